"""A comparison, or differences from a baseline, as a table of texts, from which every output format is made."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from results.compare import Comparison
from results.groups import with_names_of_parts
from results.ranking import LEVEL, SIGNIFICANT
from results.texts import precision, short_names, spread, written

if TYPE_CHECKING:
    import pandas as pd

BEST, CLOSE = "*", "†"  # of the best number of a column, and of those that are not significantly worse
_USUAL = "what: unless a row says otherwise, "


class TextTable(NamedTuple):
    """A table of texts."""

    frame: pd.DataFrame
    labels: int
    """How many of its first columns say what runs a row is about. The others hold numbers."""
    caption: list[str]
    """Lines below the table."""
    narrow: TextTable | None = None
    """The same with all keys in one column, `what`; None where that would be no narrower."""


def text_table(comparison: Comparison, percent: bool = False) -> TextTable:
    """Lays out a comparison. percent: whether to give accuracies in percent, with one digit after the point."""
    return _paired(comparison, percent) if comparison.paired else _compared(comparison, percent)


def _compared(comparison: Comparison, percent: bool) -> TextTable:
    import pandas as pd

    frame, by, columns = comparison.frame, list(comparison.by), list(comparison.columns)
    names, usual = short_names([*by, *columns]), _usual(frame)
    several = frame["metric"].nunique() > 1
    heads: dict[str, None] = {}
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    metrics = list(dict.fromkeys(frame["metric"]))
    records: Any = frame.to_dict("records")
    briefs = with_names_of_parts([*by, *columns], records)
    labels = [tuple(written(record[key]) for key in by) for record in records]
    ordered = frame.sort_values(columns, na_position="first", kind="stable") if columns else frame
    for place in sorted(ordered.index, key=lambda place: metrics.index(records[place]["metric"])):
        metric = records[place]["metric"].replace("_", " ") + unit_of(records[place]["metric"], percent)[1]
        words = [f"{names[key]}={written(briefs[place][key])}" for key in columns]
        head = ", ".join([*([metric] if several or not columns else []), *words])
        heads[head] = None
        rows.setdefault(labels[place], {})[head] = _cell(records[place], percent, usual)

    def table(keys: list[str], *, what: bool) -> TextTable:
        cells = [
            [
                *([comparison.names[row]] if comparison.names else []),
                *(written(record[key]) for key in keys),
                *([comparison.what[row]] if what else []),
                *(rows[row].get(head, "-") for head in heads),
            ]
            for row, record in dict(zip(labels, briefs, strict=True)).items()
        ]
        words = [*(["name"] if comparison.names else []), *(names[key] for key in keys), *(["what"] if what else [])]
        caption = list(_caption(comparison, usual))
        if what and comparison.usual:
            caption.insert(0, _USUAL + comparison.usual)
        return TextTable(pd.DataFrame(cells, columns=[*words, *heads]), len(words), caption)

    if "name" in by:
        return table(by, what=any(comparison.what.values()))
    return table(by, what=False)._replace(narrow=table([], what=True) if len(by) > 1 else None)


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


def _paired(paired: Comparison, percent: bool) -> TextTable:
    """Lays out differences: a row for each case and metric."""
    import pandas as pd

    names = short_names(paired.by)
    records: list[dict[Any, Any]] = paired.frame.to_dict("records")
    several, what = len({record["baseline"] for record in records}) > 1, any(paired.what.values())
    rows = []
    for record in records:
        scale, unit = unit_of(record["metric"], percent)
        keys = tuple(written(record[key]) for key in paired.by)
        labels = [*keys, *([paired.what[keys]] if what else []), record["metric"].replace("_", " ") + unit]
        rows.append([*labels, *([record["baseline"]] if several else []), *_difference(record, scale)])
    baseline = "its baseline" if several else records[0]["baseline"]
    about = {
        ", ".join(map("{}={}".format, paired.by, keys)): f" ({text})" for keys, text in paired.what.items() if text
    }
    caption = [
        f"difference: mean over pairs of runs with one seed, minus {baseline}{about.get(baseline, '')}",
        f"in brackets: its interval of {LEVEL:.0%}; p: of the paired t-test; p, Holm: corrected over all cases of the "
        "metric",
    ]
    if evaluated := paired.measure.evaluated:
        caption.insert(0, f"{', '.join(evaluated)}: {paired.measure.text}")
    if what and paired.usual:
        caption.insert(0, _USUAL + paired.usual)
    heads = [*names.values(), *(["what"] if what else []), "metric", *(["baseline"] if several else [])]
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
