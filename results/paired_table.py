"""Differences from a baseline as a table of texts, from which every output format is made."""

from __future__ import annotations

import math
from typing import Any

from results.differences import LEVEL, RESAMPLES
from results.paired import Paired
from results.text_table import Cell, Texts, TextTable, unit_of
from results.texts import precision, short_names, written

_HEADS = ("pairs", "difference", "by t", "by bootstrap", "p", "p, Holm", "narrower")


def paired_table(paired: Paired, percent: bool = False) -> TextTable:
    """Lays out differences: a row for each case and metric. percent: whether to give accuracies in percent."""
    names = short_names(paired.by)
    records: list[dict[Any, Any]] = paired.frame.to_dict("records")
    several = len({record["baseline"] for record in records}) > 1
    rows: list[tuple[Texts, list[Cell]]] = []
    for record in records:
        scale, unit = unit_of(record["metric"], percent)
        labels = (*(written(record[key]) for key in paired.by), record["metric"].replace("_", " ") + unit)
        rows.append(((*labels, *([record["baseline"]] if several else [])), _cells(record, scale)))
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
    return TextTable(labels=heads, heads=[(head,) for head in _HEADS], rows=rows, caption=caption)


def _cells(record: dict[Any, Any], scale: float) -> list[Cell]:
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
