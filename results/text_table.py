"""A comparison, or differences from a baseline, as a table of texts, from which every output format is made."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from results.compare import Comparison
from results.paired import Paired
from results.ranking import LEVEL, RESAMPLES, SIGNIFICANT
from results.texts import precision, short_names, spread, written

if TYPE_CHECKING:
    import pandas as pd

MARK = "†"  # of numbers that are not significantly worse than the best
_OF_PAIRS = ("pairs", "difference", "by t", "by bootstrap", "p", "p, Holm", "narrower")

Texts: TypeAlias = tuple[str, ...]
Place: TypeAlias = tuple[Texts, str, Texts]  # values of the rows' keys, metric, values of the columns' keys
Row: TypeAlias = dict[Any, Any]  # a row of the frame


class Cell(NamedTuple):
    """A number in the table."""

    text: str
    best: bool = False  # whether it is the best of its column
    mark: str = ""  # MARK where it was tested against the best one, and is not significantly worse


class NumberColumn(NamedTuple):
    """A column of numbers."""

    metric: str
    values: Texts  # values of the keys that make columns
    kind: str = "ours"  # ours, published or difference


@dataclass(frozen=True)
class TextTable:
    """A table of texts."""

    labels: Texts  # heads of the first columns, which say what runs a row is about
    heads: list[Texts]  # heads of each column of numbers, one for each level, the widest first
    rows: list[tuple[Texts, list[Cell]]]  # the labels and the numbers of each row
    caption: list[str]  # lines below the table
    footnote: str = ""  # the one of these that says what marks mean


def text_table(comparison: Comparison, percent: bool = False) -> TextTable:
    """Lays out a comparison. percent: whether to give accuracies in percent, with one digit after the point."""
    names = short_names([*comparison.by, *comparison.columns])
    records: dict[Place, Row] = {_place(comparison, row): row for row in comparison.frame.to_dict("records")}
    columns, usual, rows = list(_columns(comparison)), _usual(comparison.frame), []
    for labels in dict.fromkeys(row for row, _, _ in records):
        cells = []
        for metric, values, kind in columns:
            record = records.get((labels, metric, values))
            cells.append(Cell("-") if record is None else _cell(record, kind, percent, usual))
        rows.append((labels, cells))
    heads = [_head(comparison, column, names, percent) for column in columns]
    return TextTable(
        labels=tuple(names[key] for key in comparison.by),
        heads=heads,
        rows=rows,
        caption=list(_caption(comparison, usual)),
        footnote=footnote(comparison),
    )


def _place(comparison: Comparison, record: Row) -> Place:
    by, columns = (tuple(written(record[key]) for key in keys) for keys in (comparison.by, comparison.columns))
    return by, record["metric"], columns


def _columns(comparison: Comparison) -> Iterator[NumberColumn]:
    keys = list(comparison.columns)
    values: list[Texts] = [()]
    if keys:
        distinct = comparison.frame[keys].drop_duplicates().sort_values(keys, na_position="first")
        values = [tuple(map(written, row)) for row in distinct.itertuples(index=False)]
    for metric in comparison.frame["metric"].unique():
        published = comparison.paper and metric == comparison.paper.metric
        for chosen in values:
            for kind in ("ours", "published", "difference") if published else ("ours",):
                yield NumberColumn(metric, chosen, kind)


def _head(comparison: Comparison, column: NumberColumn, names: dict[str, str], percent: bool) -> Texts:
    """Returns a column's heads: its metric, its keys with their values, and whether its numbers are ours or published.

    The metric is left out if it is the only one and there are keys.
    """
    keys = [f"{names[key]}={value}" for key, value in zip(comparison.columns, column.values, strict=True)]
    metric = [f"{column.metric.replace('_', ' ')}{unit_of(column.metric, percent)[1]}"]
    several = comparison.frame["metric"].nunique() > 1
    return (*(metric if several or not keys else []), *keys, *([column.kind] if comparison.paper else []))


def unit_of(metric: str, percent: bool) -> tuple[float, str]:
    """Returns the factor to show a metric with, and its unit, to put after its name."""
    if "bytes" in metric.split("_"):
        return 1e-6, ", MB"
    if "flops" in metric.split("_"):
        return 1e-9, ", GFLOP"
    return (100.0, ", %") if percent and metric == "accuracy" else (1.0, "")


def _usual(frame: pd.DataFrame) -> int:
    """Returns over how many runs most numbers were taken, with those that lack the number."""
    return int((_counted(frame) + frame["missing"]).mode().max())


def _counted(frame: pd.DataFrame) -> pd.Series[int]:
    return frame["runs"] + frame.get("censored", 0)


def _cell(record: Row, kind: str, percent: bool, usual: int) -> Cell:
    scale, _ = unit_of(record["metric"], percent)
    form = ".1f" if scale == 100 else precision(record["mean"] * scale, record["std"] * scale)
    if kind == "difference":
        return Cell("-" if math.isnan(record["difference"]) else f"{record['difference'] * scale:+{form}}")
    if kind == "published":
        value = record["paper"] * scale
        return Cell("-" if math.isnan(value) else spread(value, record["paper_std"] * scale, form))
    if record.get("censored"):
        return Cell(f"> {record['mean'] * scale:{form}} ({record['runs']} of {record['runs'] + record['censored']})")
    if not record["runs"]:
        return Cell("-")
    text = spread(record["mean"] * scale, record["std"] * scale, form)
    text += f" ({record['runs']})" if record["runs"] != usual else ""
    return Cell(text, bool(record["best"]), MARK if record["p"] >= SIGNIFICANT else "")


def _caption(comparison: Comparison, usual: int) -> Iterator[str]:
    """Yields the lines below the table."""
    frame = comparison.frame
    if evaluated := comparison.measure.evaluated:
        yield f"{', '.join(evaluated)}: {comparison.measure.text}"
    each = f", {usual} runs each" if usual > 1 else ""
    several = _counted(frame).max() > 1
    yield f"mean ± sample standard deviation over seeds{each}" if several else "one run each"
    plain = frame[frame["censored"] == 0] if "censored" in frame else frame
    if not plain["runs"].isin([0, usual]).all():
        yield "in brackets: over how many runs, where it is another number"
    if len(plain) < len(frame):
        text = "> a mean in which runs that have not reached the target count with what they had spent"
        yield f"{text}; in brackets: how many have"
    if marks := footnote(comparison):
        yield marks
    if comparison.paper:
        yield f"published: {' '.join(comparison.paper.title.split())}"
    for text in comparison.not_run:
        yield f"not run: {text}"


def footnote(comparison: Comparison) -> str:
    """Says what marks mean; empty where no number is the best of its column."""
    if not comparison.frame["best"].any():
        return ""
    if not comparison.frame["p"].notna().any():
        return "bold: best mean of its column; too few runs for a test"
    test = f"t-test, paired by seed where seeds are shared, Holm-corrected within the column, p ≥ {SIGNIFICANT:.2g}"
    return f"bold: best mean of its column; {MARK} not significantly worse ({test})"


# --- differences from a baseline --------------------------------------------------------------------------------------


def paired_table(paired: Paired, percent: bool = False) -> TextTable:
    """Lays out differences: a row for each case and metric. percent: whether to give accuracies in percent."""
    names = short_names(paired.by)
    records: list[dict[Any, Any]] = paired.frame.to_dict("records")
    several = len({record["baseline"] for record in records}) > 1
    rows: list[tuple[Texts, list[Cell]]] = []
    for record in records:
        scale, unit = unit_of(record["metric"], percent)
        labels = (*(written(record[key]) for key in paired.by), record["metric"].replace("_", " ") + unit)
        rows.append(((*labels, *([record["baseline"]] if several else [])), _differences(record, scale)))
    baseline = "its baseline" if several else records[0]["baseline"]
    caption = [
        f"difference: mean over pairs of runs with one seed, minus {baseline}",
        f"in brackets: {LEVEL:.0%} intervals, by the paired t-test and by the bootstrap (percentiles of {RESAMPLES:,} "
        "resamples); p: of the t-test; p, Holm: corrected over all cases of the metric",
        "narrower: than the interval of the same runs if they are not paired (Welch)",
    ]
    if evaluated := paired.measure.evaluated:
        caption.insert(0, f"{', '.join(evaluated)}: {paired.measure.text}")
    heads = (*names.values(), "metric", *(["baseline"] if several else []))
    return TextTable(labels=heads, heads=[(head,) for head in _OF_PAIRS], rows=rows, caption=caption)


def _differences(record: dict[Any, Any], scale: float) -> list[Cell]:
    mean = record["difference"] * scale
    form = precision(mean, record["std"] * scale)
    texts = [
        str(record["pairs"]),
        "-" if math.isnan(mean) else f"{mean:+{form}}",
        *(
            _interval(record[f"{kind}_low"] * scale, record[f"{kind}_high"] * scale, form)
            for kind in ("t", "bootstrap")
        ),
        _or_dash(record["p"], ".2g"),
        _or_dash(record["p_holm"], ".2g"),
        _or_dash(record["narrower"], ".0%"),
    ]
    return [Cell(text) for text in texts]


def _interval(low: float, high: float, form: str) -> str:
    return "-" if math.isnan(low) else f"[{low:+{form}}, {high:+{form}}]"


def _or_dash(value: float, form: str) -> str:
    return "-" if math.isnan(value) else f"{value:{form}}"
