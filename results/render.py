"""A comparison, or differences from a baseline, as a table of texts, and the formats in which that can be printed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from results.compare import Comparison
from results.groups import with_names_of_parts
from results.ranking import LEVEL, SIGNIFICANT
from results.texts import GAP, plain_table, precision, short_names, spread, written

if TYPE_CHECKING:
    import pandas as pd

BEST, CLOSE = "*", "†"  # of the best number of a column, and of those that are not significantly worse
_KEYS = 3  # columns of keys in a page, at most
_WORDS = 24  # letters of words in a line, at least
_WHOLE = re.compile(r"\n|(?<!±) +(?!±)")  # between what stays in one line


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
    names = short_names([*by, *columns])
    # Over how many runs most numbers were taken, with those that lack the number.
    usual = int((frame["runs"] + frame.get("censored", 0) + frame["missing"]).mode().max())
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
        caption = [*_about(comparison, what), *_caption(comparison, usual)]
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


def _about(comparison: Comparison, what: bool) -> Iterator[str]:
    """Yields the first lines below any table. what: whether it has that column."""
    if what and comparison.usual:
        yield f"what: unless a row says otherwise, {comparison.usual}"
    if evaluated := comparison.measure.evaluated:
        yield f"{', '.join(evaluated)}: {comparison.measure.text}"


def _caption(comparison: Comparison, usual: int) -> Iterator[str]:
    """Yields the lines below a table of groups."""
    frame = comparison.frame
    each = f", {usual} runs each" if usual > 1 else ""
    several = (frame["runs"] + frame.get("censored", 0)).max() > 1
    yield f"mean ± sample standard deviation over seeds{each}" if several else "one run each"
    plain = frame[frame["censored"] == 0] if "censored" in frame else frame
    if not plain["runs"].isin([0, usual]).all():
        yield "in brackets: over how many runs, where it is another number"
    if len(plain) < len(frame):
        text = "> a mean in which runs that have not reached the target count with what they had spent"
        yield f"{text}; in brackets: how many have"
    if frame["best"].any():
        test = f"t-test, paired by seed where seeds are shared, Holm-corrected within the column, p ≥ {SIGNIFICANT:.2g}"
        close = f"{CLOSE} not significantly worse ({test})"
        if frame["p"].isna().all():
            enough = frame.groupby("best")["runs"].max().gt(1).all()  # both the best and another
            close = "no test, because differences do not vary" if enough else "too few runs for a test"
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
        *_about(paired, what),
        f"difference: mean over pairs of runs with one seed, minus {baseline}{about.get(baseline, '')}",
        f"in brackets: its interval of {LEVEL:.0%}; p: of the paired t-test; p, Holm: corrected over all cases of the "
        "metric",
    ]
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


def render(comparison: Comparison, format: str, percent: bool = False, width: int = 80) -> RenderableType:
    """Renders a comparison as `table`, for a terminal, or as text: `markdown`, `latex` or `csv`.

    percent: whether to give accuracies in percent; csv always gives fractions. width: of the terminal, in letters.
    """
    if format == "csv":  # one row for each group and metric, with nothing rounded
        return str(comparison.frame.to_csv(index=False, lineterminator="\n")).rstrip("\n")
    shown = text_table(comparison, percent)
    if format == "table":
        if shown.narrow and sum(column_widths(shown.frame, shown.labels)[0]) > width:
            shown = shown.narrow
        return Group(*_tables(shown, width), Text(), *(Text(line, style="dim") for line in shown.caption))
    return _markdown(shown) if format == "markdown" else _latex(shown)


def fitted(frame: pd.DataFrame, words: int, width: int) -> Table:
    """Returns a table whose widest columns are wrapped, so that it has this width, as far as no number is cut."""
    least, widths = column_widths(frame, words)
    while sum(widths) - GAP > width and (wide := [at for at, found in enumerate(widths) if found > least[at]]):
        widths[max(wide, key=widths.__getitem__)] -= 1
    return plain_table(frame, words, GAP, [found - GAP for found in widths])


def column_widths(frame: pd.DataFrame, words: int) -> tuple[list[int], list[int]]:
    """Returns what columns need at least, and for no line to be wrapped, with the gap after them. words: as in
    `plain_table`."""
    least, longest = list[int](), list[int]()
    for place, head in enumerate(frame):
        cells = [str(head), *frame.iloc[:, place]]
        whole = max(len(piece) for cell in cells for piece in _WHOLE.split(cell))
        longest.append(max(len(line) for cell in cells for line in cell.split("\n")) + GAP)
        least.append(max(whole + GAP, min(longest[-1], _WORDS + GAP) if place < words else 0))
    return least, longest


def _tables(shown: TextTable, width: int) -> Iterator[RenderableType]:
    """Yields one table or, where it would be too wide, several one after another, each with some of the numbers."""
    least, _ = column_widths(shown.frame, shown.labels)
    blocks, used = list[list[int]](), math.inf
    for place in range(shown.labels, len(least)):
        if used + least[place] > width + GAP:
            blocks.append([])
            used = sum(least[: shown.labels])
        blocks[-1].append(place)
        used += least[place]
    for number, block in enumerate(blocks):
        yield from [Text()] if number else []
        yield fitted(shown.frame.iloc[:, [*range(shown.labels), *block]], shown.labels, width)


def as_html(shown: TextTable) -> str:
    """Renders a table for a page or a notebook: names and numbers before other keys, which may be many."""
    if shown.narrow and ("name" in shown.frame or shown.labels > _KEYS):
        shown = shown.narrow
    frame = shown.frame
    if {"name", "what"} <= {*frame}:
        frame = frame[[*frame.columns.drop("what"), "what"]]
    return f"{frame.to_html(index=False, border=0)}<p>{'<br/>'.join(map(escape, shown.caption))}</p>"


def _markdown(shown: TextTable) -> str:
    heads, numbers = [*map(str, shown.frame)], shown.frame.shape[1] - shown.labels
    rule = [":--"] * shown.labels + ["--:"] * numbers
    lines: list[list[str]] = [heads, rule, *shown.frame.to_numpy().tolist()]
    rows = ("| " + " | ".join(text.replace("|", r"\|").replace("*", r"\*") for text in line) + " |" for line in lines)
    return "\n".join([*rows, "", *(f"{line}  " for line in shown.caption)]).rstrip()


def _latex(shown: TextTable) -> str:
    sides = "l" * shown.labels + "r" * (shown.frame.shape[1] - shown.labels)
    text = shown.frame.style.hide(axis="index").format(escape="latex").format_index(escape="latex", axis=1)
    tabular = text.to_latex(hrules=True, column_format=sides)
    for sign, command in (("±", r"$\pm$"), ("†", r"$^{\dagger}$"), ("≥", r"$\geq$")):
        tabular = tabular.replace(sign, command)
    return "\n".join([*(f"% {line}" for line in shown.caption), tabular.rstrip()])
