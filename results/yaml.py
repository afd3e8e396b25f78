"""Reads texts in YAML, and writes them."""

from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.error import MarkedYAMLError

_LONGEST = 400  # letters of a message


class _Composer(Composer):
    """Makes the nodes of a text."""

    def __init__(self, loader: Any = None) -> None:
        super().__init__(loader)
        self.warn_double_anchors = False  # YAML allows an anchor to be defined again


def parse(text: str) -> Any:
    """Returns what a text in YAML 1.2 holds. Raises ValueError, with a message of one line, if it is no such text."""
    yaml = YAML(typ="safe", pure=True)
    yaml.Composer = _Composer
    try:
        return yaml.load(text)
    except TypeError:
        raise ValueError("keys must be text; put them in quotes") from None
    except RecursionError:
        raise ValueError("blocks must not be nested so deep") from None
    except Exception as error:  # the library lets errors of functions such as chr() through
        raise ValueError(_one_line(error)) from error


def as_yaml(value: Any) -> str:
    """Returns plain data as YAML, with the innermost blocks and lists in one line."""
    yaml = YAML()
    yaml.default_flow_style = None
    yaml.width = 100
    text = StringIO()
    yaml.dump(value, text)
    return text.getvalue()


def _one_line(error: Exception) -> str:
    if not isinstance(error, MarkedYAMLError):
        text = " ".join(str(error).split()) or type(error).__name__
    else:
        mark, what = error.problem_mark, ", ".join(part for part in (error.context, error.problem) if part)
        text = f"line {mark.line + 1}, column {mark.column + 1}: {what}" if mark else what
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
