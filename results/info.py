"""Reads run.json, checks the types of the values in it that are read, and says which metrics are better when they are
larger."""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict  # pydantic takes no other before Python 3.12

from results.location import reaching, require_file, why
from results.texts import quoted

CURE = "copy it again from where it is whole, or run the scenario again"
LARGEST = 2**29  # bytes of run.json
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # halves of letters, as JSON escapes them


class NotARun(ValueError):
    """Raised for a folder that is not a run's, or that this version cannot read."""


def _block(total: bool = True, **types: Any) -> Any:
    """Returns the type of a block of keys, of which all must be there, or any; there may be others."""
    make: Any = TypedDict
    block = make("Block", types, total=total)
    block.__pydantic_config__ = ConfigDict(strict=True)
    return block


_ANY: TypeAlias = dict[str, Any]
_TEXTS, _NUMBERS = dict[str, str | None], dict[str, float | None]
_PARTS = ("data", "model", "algorithm", "topology", "world", "run")  # of the scenario
_INFO: TypeAdapter[Any] = TypeAdapter(
    _block(
        False,
        run=str,
        status=str,
        scenario=_block(False, **dict.fromkeys(_PARTS, _block(False, name=str | None) | None)),
        seconds=_NUMBERS,
        totals=_NUMBERS,
        rows=dict[str, int | None],
        holder=_ANY,
        **dict.fromkeys(("name", "scenario_hash", "started_at", "finished_at"), str | None),
        **dict.fromkeys(("ended_early", "ended_by", "error"), str | None),
        **dict.fromkeys(("seed", "parameters", "classes"), int | None),
        **dict.fromkeys(("digest", "versions"), _TEXTS | None),
        **dict.fromkeys(("git", "sweep"), _ANY | None),
        **dict.fromkeys(("workers", "resumed"), list[_ANY] | None),
        notes=list[str] | None,
        machines=list[_block(workers=list[str])] | None,  # type: ignore[misc]
        input_shape=list[int] | dict[str, list[int]] | None,  # of one array of inputs, or of several by name
        depends_on=_block(raysim=str, modules=_ANY, files=_ANY) | None,
        best=_block(split=str, metric=str, value=float, step=int) | None,
        left=_block(step=int, virtual_time=float) | None,
        diverged=_block(what=str, round=int, version=int) | None,
        forked_from=_block(run=str, version=int) | None,
    )
)
"""The values that are read, and their types. Any may be missing; there may be others."""
_WORDS = {
    "string_type": "text",
    "dict_type": "a block of keys",
    "int_type": "an integer",
    "list_type": "a list",
    "float_type": "a number",
    "missing": "there",
}


def read_info(folder: Path) -> dict[str, Any]:
    """Returns the content of run.json, as it is. Raises NotARun where there is no such file, or it holds no object."""
    path = folder / "run.json"
    try:
        with reaching():
            size = require_file(path).stat().st_size
            content = path.read_bytes() if size <= LARGEST else b""
        if size > LARGEST:
            raise ValueError(f"{size:,} bytes, more than any run writes")
        text = content.decode()
        info = json.loads(text, parse_constant=_no_number, parse_int=_integer, parse_float=_number)
        if _SURROGATE.search(text):
            json.dumps(info, ensure_ascii=False).encode()  # which are no letters by themselves, but in pairs
    except OSError as error:
        raise NotARun(
            f"{folder}: a run's folder must hold run.json, which cannot be read ({why(error)}); "
            "give the folder of one run, such as runs/<id>"
        ) from error
    except (ValueError, RecursionError) as error:
        raise NotARun(f"{path}: must be JSON, got {error}; {CURE}") from error
    if not isinstance(info, dict):
        raise NotARun(f"{path}: must hold a JSON object, got {quoted(info)}; {CURE}")
    return info


def wrong_info(info: dict[str, Any]) -> list[str]:
    """Returns what is wrong with the types of values in run.json, or else with its digest, a line for each."""
    try:
        _INFO.validate_python(info)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False)
        return [f"{_key(one['loc'])}: must be {_WORDS[one['type']]}, got {quoted(one['input'])}" for one in found]
    digests = info.get("digest") or {}
    model, tables, run = (digests.get(key) for key in ("model", "tables", "run"))
    if not (model and tables and run) or hashlib.sha256(f"{model}{tables}".encode()).hexdigest() == run:
        return []
    return [f"digest.run: must be that of digest.model and digest.tables together, got {quoted(run)}"]


def _key(path: tuple[int | str, ...]) -> str:
    """Returns a value's key, without the names of types that pydantic tells of a value that may have several."""
    return ".".join(str(part) for part in path if isinstance(part, int) or part.isidentifier())


def _no_number(text: str) -> None:
    raise ValueError(f"{text}, which is no number of JSON")


def _integer(text: str) -> int:
    """Returns an integer as the tables can hold it."""
    if not -(2**63) <= (value := int(text)) < 2**63:
        raise ValueError(f"{text[:25]}, which has more than 64 bits")
    return value


def _number(text: str) -> float:
    if math.isinf(value := float(text)):
        raise ValueError(f"{text[:25]}, which is beyond all numbers")
    return value


# --- metrics of runs --------------------------------------------------------------------------------------------------

LARGER_IS_BETTER = {"accuracy": True, "loss": False}
"""Whether a larger value of a metric is the better one. A metric that is missing here has no known direction."""


def own_metrics(info: Mapping[str, Any]) -> dict[str, bool | None]:
    """Returns a run's own metrics, from its run.json: whether larger is better, None where that is not known."""
    return dict(info.get("larger_is_better") or {})


def directions(*infos: Mapping[str, Any]) -> dict[str, bool]:
    """Returns whether larger is better for the metrics above and for own ones of runs, given their run.json.

    A run's own metric is left out if its direction is not known, or if the runs disagree on it.
    """
    found: dict[str, set[bool | None]] = {}
    for info in infos:
        for metric, larger in own_metrics(info).items():
            found.setdefault(metric, set()).add(larger)
    agreed = {metric: said.pop() for metric, said in found.items() if len(said) == 1}
    return LARGER_IS_BETTER | {metric: larger for metric, larger in agreed.items() if larger is not None}
