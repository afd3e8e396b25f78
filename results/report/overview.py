"""The first section of the page: the groups with their outcomes, every run, and where scenarios differ."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rich.filesize import decimal

from results.ending import Ending, ending
from results.groups import Groups, RunGroup, text
from results.keys import flatten
from results.reader import Run
from results.summary import Score, Summary, summary


class RunLine(NamedTuple):
    """A run, as a row of the table of all runs."""

    run: Run
    summary: Summary
    ending: Ending

    @property
    def alarm(self) -> bool:
        """Whether the run has failed, has diverged, was interrupted or was probably killed."""
        return bool(self.ending.cure) or self.run.standing not in ("finished", "running")


@dataclass(frozen=True)
class Overview:
    """What ran, as texts."""

    head: tuple[str, ...]
    """The heads of the table of groups."""
    rows: list[tuple[str, ...]]
    """The cells of the table of groups, one row for each."""
    lines: list[RunLine]
    """Those that did not end as they should come first."""
    endings: str
    """How many runs ended how, such as "9 finished, 1 diverged"."""
    differ: list[tuple[str, list[str]]]
    """The keys that differ between groups, each with the value of every group."""
    within: list[str]
    """The keys that differ within a group, except seed and name."""
    common: str
    """The keys with the same value in all runs, as YAML."""


def overview(groups: Groups) -> Overview:
    """Sums up a report's runs."""
    found = {run.id: summary(run) for run in groups.runs.runs}
    runs = groups.runs
    lines = sorted((RunLine(run, found[run.id], ending(run)) for run in runs.runs), key=lambda line: not line.alarm)
    firsts = [group.runs[0].keys for group in groups.groups]
    differ = [
        (key, [text(scenario[key]) if key in scenario else "" for scenario in firsts])
        for key in runs.varying
        if key != "seed" and len({(key in scenario, text(scenario.get(key))) for scenario in firsts}) > 1
    ]
    between = {"seed", "name", *(key for key, _ in differ)}
    within = [key for key in runs.varying if key not in between]
    metric = _metric(found.values())
    time = ["virtual time"] if groups.timed else []
    last = ("rounds", "updates used", f"{metric}, last", "sent up and down", "real time")
    head = ("runs", "seeds", "status", *time, *last)
    rows = [_row(group, [found[run.id] for run in group.drawn], metric, groups.timed) for group in groups.groups]
    scenario = runs[0].info.get("scenario") or {}
    counts = Counter(line.ending.how for line in lines)
    endings = ", ".join(f"{number} {how}" for how, number in counts.items())
    return Overview(head, rows, lines, endings, differ, within, "\n".join(_yaml(scenario, set(runs.varying))))


def _metric(summaries: Any) -> str:
    """Returns the metric to show: accuracy if any run has it."""
    metrics = [score.metric for found in summaries for score in found.scores]
    return "accuracy" if "accuracy" in metrics or not metrics else metrics[0]


def _row(group: RunGroup, summaries: Sequence[Summary], metric: str, timed: bool) -> tuple[str, ...]:
    scores = [score for found in summaries if (score := _score(found, metric))]
    states = Counter(run.standing for run in group.runs)
    took = [found.wall_s for found in summaries if found.wall_s is not None]
    sent = [found.up_bytes + (found.down_bytes or 0) for found in summaries if found.up_bytes is not None]
    return (
        str(len(group.runs)),
        ", ".join(dict.fromkeys(str(found.seed) for found in summaries)),
        ", ".join(f"{count} {state}" if len(states) > 1 else state for state, count in states.items()),
        *([_mean([found.virtual_time for found in summaries])] if timed else []),
        _mean([found.rounds for found in summaries]),
        _mean(used if any(used := [found.updates["used"] for found in summaries]) else []),
        _mean([score.last for score in scores if score.last is not None]),
        decimal(round(sum(sent) / len(sent))) if sent else "-",
        f"{sum(took) / len(took):,.1f} s" if took else "-",
    )


def _score(found: Summary, metric: str) -> Score | None:
    """Returns a metric's score: of the global model rather than others, and on test samples rather than others."""
    scores = [score for score in found.scores if score.metric == metric]
    return min(scores, key=lambda score: (score.subject != "global", score.split != "test"), default=None)


def _mean(values: Sequence[float]) -> str:
    """Returns the mean as text, with the range if values differ and none is NaN."""
    if not values:
        return "-"
    if any(map(math.isnan, values)):
        return "nan"
    mean = _number(sum(values) / len(values))
    return mean if len(set(values)) == 1 else f"{mean} ({_number(min(values))} to {_number(max(values))})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def _yaml(block: Mapping[str, Any], left_out: set[str], prefix: str = "", indent: str = "") -> Iterator[str]:
    for name, value in block.items():
        if isinstance(value, Mapping):
            if inner := list(_yaml(value, left_out, f"{prefix}{name}.", indent + "  ")):
                yield f"{indent}{name}:"
                yield from inner
        elif prefix + name not in left_out:
            yield f"{indent}{name}: {text(*flatten({name: value}).values())}"
