"""A comparison as a table of texts, from which every output format is made."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from results.compare import Comparison
from results.texts import precision, short_names, spread, written

Texts: TypeAlias = tuple[str, ...]
Place: TypeAlias = tuple[Texts, str, Texts]  # values of the rows' keys, metric, values of the columns' keys
Row: TypeAlias = dict[Any, Any]  # a row of the frame


class Cell(NamedTuple):
    """A number in the table."""

    text: str
    runs: str = ""  # the number of its runs; empty where all cells have the same number
    best: bool = False  # whether it is the best of its column


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


def text_table(comparison: Comparison, percent: bool = False) -> TextTable:
    """Lays out a comparison. percent: whether to give accuracies in percent, with one digit after the point."""
    names = short_names([*comparison.by, *comparison.columns])
    records: dict[Place, Row] = {_place(comparison, row): row for row in comparison.frame.to_dict("records")}
    counts = {(record["runs"], record["missing"] + record.get("censored", 0)) for record in records.values()}
    alike = len(counts) == 1 and not max(counts)[1]
    best, columns = _best(comparison, records), list(_columns(comparison))
    rows = []
    for labels in dict.fromkeys(row for row, _, _ in records):
        cells = []
        for metric, values, kind in columns:
            place = (labels, metric, values)
            text, runs = _texts(records[place], kind, percent) if place in records else ("-", "")
            ours = kind == "ours"
            cells.append(Cell(text, runs if ours and not alike else "", ours and place in best))
        rows.append((labels, cells))
    heads = [_head(comparison, column, names, percent) for column in columns]
    return TextTable(
        labels=tuple(names[key] for key in comparison.by),
        heads=heads,
        rows=rows,
        caption=list(_caption(comparison, max(counts)[0] if alike else None)),
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


def _texts(record: Row, kind: str, percent: bool) -> tuple[str, str]:
    """Returns a number as text, and the number of its runs as text."""
    scale, _ = unit_of(record["metric"], percent)
    form = ".1f" if scale == 100 else precision(record["mean"] * scale, record["std"] * scale)
    runs, missing, censored = record["runs"], record["missing"], record.get("censored", 0)
    if kind == "difference":
        return ("-" if math.isnan(record["difference"]) else f"{record['difference'] * scale:+{form}}"), ""
    if kind == "published":
        value = record["paper"] * scale
        return ("-" if math.isnan(value) else spread(value, record["paper_std"] * scale, form)), ""
    if censored:
        reached = f"({runs} of {runs + censored} reached{f', {missing} missing' if missing else ''})"
        return f"> {record['mean'] * scale:{form}}", reached
    text = spread(record["mean"] * scale, record["std"] * scale, form) if runs else "-"
    return text, f"({runs}/{runs + missing})" if missing else f"({runs})"


def _best(comparison: Comparison, records: dict[Place, Row]) -> set[Place]:
    """Returns the places of the best mean of each column. A mean for which runs are missing, or have not reached the
    target, is never the best."""
    best = set()
    measure = comparison.measure
    for column in {place[1:] for place in records}:
        metric = column[0]
        # Other metrics are the costs of reaching a target: the less, the better.
        larger = measure.larger_is_better(metric) if metric in measure.metrics else False
        means = {
            place: record["mean"]
            for place, record in records.items()
            if place[1:] == column
            and not (record["missing"] or record.get("censored"))
            and not math.isnan(record["mean"])
        }
        if larger is not None and len(means) > 1:
            top = (max if larger else min)(means.values())
            best |= {place for place, mean in means.items() if mean == top}
    return best


def _caption(comparison: Comparison, runs: int | None) -> Iterator[str]:
    """Yields the lines of the caption. runs: how many each number was taken over; None if that differs."""
    if evaluated := comparison.measure.evaluated:
        yield f"{', '.join(evaluated)}: {comparison.measure.text}"
    spread = "mean ± sample standard deviation over seeds"
    if runs is None:
        yield f"{spread}; in brackets: runs, or runs with the number / all runs"
    else:
        yield f"{spread}, {runs} runs each" if runs > 1 else "one run each"
    if "censored" in comparison.frame and comparison.frame["censored"].any():
        yield "> a mean in which runs that have not reached the target count with what they had spent"
    if comparison.paper:
        yield f"published: {' '.join(comparison.paper.title.split())}"
    for text in comparison.not_run:
        yield f"not run: {text}"
