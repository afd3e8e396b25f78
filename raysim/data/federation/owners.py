"""Clients that are the values of a column: how many there are, which only the data themselves say."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import GetJsonSchemaHandler, ValidationError
from pydantic_core import CoreSchema

from raysim.data.dataset import Split
from raysim.parts.errors import BadValue, quoted
from raysim.parts.part import Part, spell_out


class OrColumn:
    """Says in the JSON Schema that a number may be the name of a column instead."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [handler(schema), {"type": "string"}]}


@dataclass(frozen=True)
class _Owned:
    """A source, and a column that says who owns its samples. It equals another of the same keys and files."""

    keys: str
    files: tuple[tuple[str, int, int], ...]
    by: str
    source: Part = field(compare=False)

    @classmethod
    def of(cls, source: Part, by: str) -> "_Owned":
        paths = [Path(path).expanduser() for path in source.reads()]
        stats = [(str(path.absolute()), path.stat()) for path in paths if path.exists()]
        files = tuple((path, stat.st_mtime_ns, stat.st_size) for path, stat in stats)
        return cls(repr(type(source)) + source.model_dump_json(serialize_as_any=True), files, by, source)


@lru_cache(maxsize=2)  # which keeps as many sources, with their arrays
def _number(owned: _Owned, samples: Callable[[Any], Split]) -> int:
    """Returns how many values the column has among the training samples. Raises BadValue if there is no such column."""
    return len(np.unique(samples(owned.source).column(owned.by)))


def counted(given: Any, part: type[Part], samples: Callable[[Any], Split]) -> Any:
    """Makes of a column's name as `clients` the number of its values, and the partition by them.

    given: the keys of a source. part: its class. samples: loads the training samples of one.
    """
    by = given.get("clients") if isinstance(given, dict) else None
    if not isinstance(by, str):
        return given
    divides = {"name": "natural", "by": by}
    if spell_out(given.get("partition", "natural")) not in ({"name": "natural"}, divides):
        text = f"must be left out where `clients` names a column, got `clients: {by}`"
        raise BadValue(f"{text}; leave it out, or give the number of clients", "partition")
    given = {**given, "clients": 1, "partition": divides}
    try:
        source = part.model_validate(given)
    except ValidationError:  # which says more without this one
        return given
    try:
        return {**given, "clients": _number(_Owned.of(source, by), samples)}
    except BadValue as error:
        if error.key != "partition.by":
            raise
        raise BadValue(f"{error.text}, or give the number of clients", "clients") from error
    except OSError as error:
        text = f"must be a number where the data cannot be read, got {quoted(by)}"
        raise BadValue(f"{text}, and {error}; correct the path", "clients") from error
