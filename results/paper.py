"""Published numbers, to stand beside those of runs."""

import os
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, NonNegativeFloat, ValidationError

from results.location import location
from results.measure import NotComparable
from results.store import why
from results.yaml import parse

_MUST = {"extra_forbidden": "is unknown", "missing": "must be given", "model_type": "must be a block of keys"}


class Published(BaseModel):
    """A published number. All other keys are keys of scenarios, as in `--by`: they say which runs it belongs to."""

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)

    value: float
    """The number, in the table's unit."""
    std: NonNegativeFloat | None = None
    """Its standard deviation. null: not published."""
    __pydantic_extra__: dict[str, JsonValue]


class Paper(BaseModel):
    """A table of published numbers."""

    model_config = ConfigDict(extra="forbid", strict=True)

    title: str
    """Where the numbers are from, such as "Table 2 of the paper"."""
    metric: str = "accuracy"
    """The metric, as `raysim compare --metric` names it."""
    unit: Literal["percent", "fraction"] = "fraction"
    """Whether values are percentages or as runs measure them."""
    rows: Annotated[list[Published], Field(min_length=1)]


def read_paper(path: str | os.PathLike[str]) -> Paper:
    """Reads published numbers from a YAML file. Raises NotComparable, with everything that is wrong with the file."""
    try:
        raw = parse(location(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise NotComparable(f"{path}: cannot be read: {why(error)}") from error
    except ValueError as error:
        raise NotComparable(f"{path}: must be YAML in UTF-8: {error}") from error
    try:
        return Paper.model_validate(raw)
    except ValidationError as error:
        raise NotComparable("\n".join(f"{path}: {_problem(details)}" for details in error.errors())) from None


def _problem(details: Any) -> str:
    where = ".".join(map(str, details["loc"])) or "the file"
    must = _MUST.get(details["type"]) or details["msg"].replace("Input should", "must")
    return f"{where}: {must}, got {details['input']!r}"
