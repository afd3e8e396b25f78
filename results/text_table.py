"""A comparison, or differences from a baseline, as a table of texts, from which every output format is made."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from results.compare import Comparison
from results.groups import names_of_parts
from results.paired import Paired
from results.ranking import LEVEL, SIGNIFICANT
from results.texts import precision, short_names, spread, written

if TYPE_CHECKING:
    import pandas as pd

BEST, CLOSE = "*", "†"  # of the best number of a column, and of those that are not significantly worse


class TextTable(NamedTuple):
    """A table of texts."""

    frame: pd.DataFrame
    labels: int
    """How many of its first columns say what runs a row is about. The others hold numbers."""
    caption: list[str]
    """Lines below the table."""


def text_table(comparison: Comparison | Paired, percent: bool = False) -> TextTable:
    """Lays out a comparison. percent: whether to give accuracies in percent, with one digit after the point."""
    return _paired(comparison, percent) if isinstance(comparison, Paired) else _compared(comparison, percent)


def _compared(comparison: Comparison, percent: bool) -> TextTable:
    import pandas as pd

    frame, by, columns = comparison.frame, list(comparison.by), list(comparison.columns)
    records: Any = frame.to_dict("records")
    for place, brief in enumerate(names_of_parts([*by, *columns], records)):
        for key, text in brief.items():
            frame = frame.assign(**{key: frame[key].mask(frame.index == place, text)})
    names, usual = short_names([*by, *columns]), _usual(frame)
    several = frame["metric"].nunique() > 1
    heads: dict[str, None] = {}
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    metrics = list(dict.fromkeys(frame["metric"]))
    ordered = frame.sort_values(columns, na_position="first", kind="stable") if columns else frame
    for record in sorted(ordered.to_dict("records"), key=lambda record: metrics.index(record["metric"])):
        metric = record["metric"].replace("_", " ") + unit_of(record["metric"], percent)[1]
        words = [f"{names[key]}={written(record[key])}" for key in columns]
        head = ", ".join([*([metric] if several or not columns else []), *words])
        heads[head] = None
        rows.setdefault(tuple(written(record[key]) for key in by), {})[head] = _cell(record, percent, usual)
    order = dict.fromkeys(tuple(written(record[key]) for key in by) for record in frame.to_dict("records"))
    cells = [[*labels, *(rows[labels].get(head, "-") for head in heads)] for labels in order]
    table = pd.DataFrame(cells, columns=[*(names[key] for key in by), *heads])
    return TextTable(table, len(by), list(_caption(comparison, usual)))


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


def _cell(record: dict[Any, Any], percent: bool, usual: int) -> str:
    scale, _ = unit_of(record["metric"], percent)
    form = ".1f" if scale == 100 else precision(record["mean"] * scale, record["std"] * scale)
    if record.get("censored"):
        return f"> {record['mean'] * scale:{form}} ({record['runs']} of {record['runs'] + record['censored']})"
    if not record["runs"]:
        return "-"
    text = spread(record["mean"] * scale, record["std"] * scale, form)
    text += f" ({record['runs']})" if record["runs"] != usual else ""
    return text + (BEST if record["best"] else CLOSE if record["p"] >= SIGNIFICANT else "")


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
    if frame["best"].any():
        test = f"t-test, paired by seed where seeds are shared, Holm-corrected within the column, p ≥ {SIGNIFICANT:.2g}"
        tested = frame["p"].notna().any()
        close = f"{CLOSE} not significantly worse ({test})" if tested else "too few runs for a test"
        yield f"{BEST} best mean of its column; {close}"
    yield from comparison.context


def _paired(paired: Paired, percent: bool) -> TextTable:
    """Lays out differences: a row for each case and metric."""
    import pandas as pd

    names = short_names(paired.by)
    records: list[dict[Any, Any]] = paired.frame.to_dict("records")
    several = len({record["baseline"] for record in records}) > 1
    rows = []
    for record in records:
        scale, unit = unit_of(record["metric"], percent)
        labels = [*(written(record[key]) for key in paired.by), record["metric"].replace("_", " ") + unit]
        rows.append([*labels, *([record["baseline"]] if several else []), *_difference(record, scale)])
    baseline = "its baseline" if several else records[0]["baseline"]
    caption = [
        f"difference: mean over pairs of runs with one seed, minus {baseline}",
        f"in brackets: its interval of {LEVEL:.0%}; p: of the paired t-test; p, Holm: corrected over all cases of the "
        "metric",
    ]
    if evaluated := paired.measure.evaluated:
        caption.insert(0, f"{', '.join(evaluated)}: {paired.measure.text}")
    heads = [*names.values(), "metric", *(["baseline"] if several else [])]
    numbers = ["pairs", "difference", f"{LEVEL:.0%} interval", "p", "p, Holm"]
    return TextTable(pd.DataFrame(rows, columns=[*heads, *numbers]), len(heads), caption)


def _difference(record: dict[Any, Any], scale: float) -> list[str]:
    mean = record["difference"] * scale
    form = precision(mean, record["std"] * scale)
    low, high = record["low"] * scale, record["high"] * scale
    return [
        str(record["pairs"]),
        "-" if math.isnan(mean) else f"{mean:+{form}}",
        "-" if math.isnan(low) else f"[{low:+{form}}, {high:+{form}}]",
        *("-" if math.isnan(record[p]) else f"{record[p]:.2g}" for p in ("p", "p_holm")),
    ]
