"""Turns refusals of what a scenario names, such as a damaged file, into problems with the path of the key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from raysim.parts.errors import BadInput, BadValue, Problem

# How raysim's own messages about data and models start: what is wrong, perhaps a part's name, perhaps a key of it.
_HEAD = re.compile(r"(?P<what>[a-z_]+(?:\.[a-z_0-9]+)*)(?: [a-z0-9_]+)?: (?:`(?P<key>[a-z_]+)` (?=must))?")


@contextmanager
def blaming(key: str) -> Iterator[None]:
    """Turns an error about what this key names into BadInput, whose text says all that a user needs.

    Only errors that raysim itself raises, and files that cannot be opened, are such errors. Others pass as they are,
    because they may be faults of the code, a user's or raysim's, and then the traceback is what helps.
    """
    try:
        yield
    except BadInput:
        raise
    except BadValue as error:
        raise BadInput(f"{key}.{error.key}" if error.key else key, error.text) from error
    except (ValueError, OSError) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise BadInput(key, f"{error.filename!r} cannot be read: {error.strerror}") from error
        if not _of_raysim(error):
            raise
        found = _problem(key, str(error))
        raise BadInput(found.path, found.text) from error


def _of_raysim(error: Exception) -> bool:
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return frame is not None and str(frame.tb_frame.f_globals.get("__name__")).startswith("raysim.")


def _problem(key: str, text: str) -> Problem:
    """Returns a problem whose path is as exact as the text says: `data: `size` must ...` is about data.size."""
    head = _HEAD.match(text)
    if head is None:
        return Problem(key, text)
    what, of_part = head["what"], head["key"]
    block = key.split(".")[0]
    if what == "partition":
        path = "data" if of_part == "clients" else "data.partition"
    elif what.split(".")[0] == block:
        path = max(key, what, key=len)
    elif what.startswith("run."):  # such as the loss that a model is tried with
        path = what
    elif what.split(".")[0] == "data" and block == "server_data":  # of a data set that the server has
        path = f"server_data.{what}"
    else:
        return Problem(key, text)
    return Problem(f"{path}.{of_part}" if of_part else path, text[head.end() :])
