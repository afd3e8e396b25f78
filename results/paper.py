"""Published numbers, to stand beside those of runs."""

import os
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, JsonValue, NonNegativeFloat, ValidationError

from results.compare import Comparison
from results.keys import UnknownKey, flatten, spell_out
from results.location import location
from results.measure import NotComparable
from results.store import why
from results.texts import short_names, written
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


def beside(comparison: Comparison, paper: Paper) -> Comparison:
    """Adds published numbers to a comparison, each to the group of runs whose keys have the values of its row.

    Raises NotComparable for a metric or a key that runs are not compared by, for a row that fits several groups, and
    for a second row of one group.
    """
    if paper.metric not in comparison.measure.metrics:
        names = ", ".join(comparison.measure.metrics)
        raise NotComparable(f"{paper.title}: metric: must be one that is compared, {names}, got {paper.metric!r}")
    frame = comparison.frame.assign(paper=np.nan, paper_std=np.nan, difference=np.nan)
    keys = (*comparison.by, *comparison.columns)
    scale = 100 if paper.unit == "percent" else 1
    not_run = []
    for number, row in enumerate(paper.rows):
        where = f"{paper.title}: rows.{number}"
        wanted = {_spell_out(key, keys, where): value for key, value in flatten(row.model_extra or {}).items()}
        chosen = frame["metric"] == paper.metric
        for key, value in wanted.items():
            chosen &= frame[key].map(written) == written(value)
        if chosen.sum() > 1:
            others = ", ".join(key for key in keys if key not in wanted)
            raise NotComparable(f"{where}: must fit one group of runs, got {chosen.sum()} groups; give it {others} too")
        if frame.loc[chosen, "paper"].notna().any():
            raise NotComparable(f"{where}: must be the only row of its group, got a second")
        value, std = row.value / scale, np.nan if row.std is None else row.std / scale
        frame.loc[chosen, ["paper", "paper_std"]] = value, std
        frame.loc[chosen, "difference"] = frame.loc[chosen, "mean"] - value
        if not chosen.any():
            which = ", ".join(f"{name}={written(wanted[key])}" for key, name in short_names(wanted).items())
            not_run.append(f"{which}: {row.value:g}{' %' if scale == 100 else ''}")
    return replace(comparison, frame=frame, paper=paper, not_run=tuple(not_run))


def _spell_out(key: str, keys: tuple[str, ...], where: str) -> str:
    try:
        return spell_out(key, keys)
    except UnknownKey:
        must = f"must have keys that make rows or columns ({', '.join(keys)}), got {key!r}"
        raise NotComparable(f"{where}: {must}; see --by, --columns") from None
