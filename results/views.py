"""What is known of a run at a look, from little reading, whether it is over, under way, killed or damaged: the one view
of runs that lists, the terminal and the live page show; and the lists themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from results.groups import grouped
from results.info import NotARun, Status
from results.keys import Value
from results.reader import Run
from results.readings import WHAT, are_apart, over_members
from results.run_set import RunSet
from results.texts import count

Line = tuple[str, ...]
_HEADS = ("run", "what", "status", "rounds", "t")


class Curve(NamedTuple):
    """A metric over a run's rounds; of clients or peers, their mean."""

    subject: str  # as in the table `evaluations`
    split: str
    metric: str
    rounds: tuple[int, ...]
    values: tuple[float, ...]  # those that are not null

    @property
    def label(self) -> str:
        """Its name, such as `accuracy` of the global model on test samples, or `accuracy (clients, validation)`."""
        whose = [] if self.subject == "global" else [self.subject if self.subject[-1] == "s" else f"{self.subject}s"]
        where = [] if self.split == "test" else [self.split]
        return f"{self.metric} ({', '.join(found)})" if (found := whose + where) else self.metric


@dataclass(frozen=True)
class View:
    """A run at one moment. Numbers are None where they are not known, as those of a damaged run."""

    path: str
    """Below the folder that was looked at. It is the run's name there, for two folders may hold one id."""
    status: Status
    why: str
    """Why it failed or ended early, what is known of one that is under way or was killed, or what is damaged."""
    run: Run | None = None
    """None where run.json cannot be read, and where another folder holds the same run."""
    rounds: int | None = None
    """That are over."""
    of: int | None = None
    """Rounds of the whole run; None if something else ends it."""
    virtual_time: float | None = None
    sent: int | None = None
    """Bytes of updates and messages, up and down; None before the first step."""
    wall_s: float | None = None
    """Real time, in seconds."""
    curves: tuple[Curve, ...] = ()
    """The first is the one to show: accuracy before loss before others, of the global model and on test samples if
    there are such."""

    @property
    def readable(self) -> bool:
        return self.status not in (Status.DAMAGED, Status.COPY)

    @cached_property
    def keys(self) -> dict[str, Value]:
        """The values of its scenario by dotted path; none where run.json cannot be read."""
        return self.run.keys if self.run else {}

    @property
    def progress(self) -> str:
        """Rounds that are over, and of how many."""
        return str(self.rounds if self.rounds is not None else "") + (f"/{self.of}" if self.of is not None else "")

    @property
    def last(self) -> tuple[str, str]:
        """The metric to show, and its last value; empty texts where there is none."""
        return (self.curves[0].label, f"{self.curves[0].values[-1]:.4g}") if self.curves else ("", "")

    @property
    def remark(self) -> str:
        """What it waits for, since when, and how long it took before; why it ended where it does not continue."""
        if self.run is None or not self.status.goes_on:
            return self.why
        silent = (datetime.now(UTC) - self.run.last_written).total_seconds()
        if not self.rounds:
            return f"waits for its first round, {silent:.0f} s since it wrote"
        pace = f"; a round takes {self.wall_s / self.rounds:.2g} s" if self.wall_s else ""
        return f"waits for round {self.rounds + 1}, {silent:.0f} s since it wrote{pace}"


def view(run: Run, path: str = ".") -> View:
    """Looks at a run, also where its files are damaged."""
    try:
        return _read(run, path)
    except (NotARun, OSError) as error:
        return View(path, Status.DAMAGED, str(error), run if "info" in vars(run) else None)


def _read(run: Run, path: str) -> View:
    info = run.info
    steps = run.table("steps", ["round", "virtual_time", "up_bytes", "down_bytes", "elapsed_s"])
    columns = [*WHAT, "round", "virtual_time", "value"]
    evaluations = run.table("evaluations", columns, pc.is_valid(pc.field("value")))
    totals, scenario = info.get("totals") or {}, info.get("scenario") or {}
    both = pa.concat_tables(table.select(["round", "virtual_time"]) for table in (steps, evaluations))
    sent = [total for name in ("up_bytes", "down_bytes") if (total := pc.sum(steps[name]).as_py()) is not None]
    last, time = (pc.max(both[name]).as_py() for name in ("round", "virtual_time"))
    return View(
        path,
        run.standing,
        run.why,
        run,
        rounds=totals.get("rounds", 0 if last is None else last + 1),
        of=(scenario.get("run") or {}).get("rounds"),
        virtual_time=totals.get("virtual_time", time or 0.0),
        sent=sum(sent) if sent else None,
        wall_s=(info.get("seconds") or {}).get("total") or pc.max(steps["elapsed_s"]).as_py(),
        curves=tuple(sorted(_curves(evaluations.drop_columns(["virtual_time"])), key=_first)),
    )


def _curves(evaluations: pa.Table) -> list[Curve]:
    frame = over_members(evaluations).to_pandas()
    frame = frame[~((frame["subject"] == "peers") & are_apart(frame["metric"].astype(str)))]
    return [
        Curve(str(subject), str(split), str(metric), tuple(rows["round"]), tuple(rows["value"]))
        for (subject, split, metric), rows in frame.groupby([*WHAT], observed=True)
    ]


def _first(curve: Curve) -> tuple[bool, ...]:
    return (
        *(curve.metric != metric for metric in ("accuracy", "loss")),
        *(curve.subject != subject for subject in ("global", "client", "peers")),
        *(curve.split != split for split in ("test", "validation")),
    )


# --- lists of runs ----------------------------------------------------------------------------------------------------


def lines(views: Sequence[View]) -> tuple[Line, list[Line], list[str]]:
    """Returns a line for each run that lies in the folder that was looked at, and one for each folder of runs in it.

    Before them, it returns their heads, of which the last one is the metric, or `last` where metrics differ; and after
    them a line for each run in the folder that did not go to its end, which says why.
    """
    names = labels(views)
    found: list[Line] = []
    reasons: list[str] = []
    for name, group in groupby(views, lambda one: one.path.partition("/")[0]):
        inside = list(group)
        if [one.path for one in inside] == [name]:
            one = inside[0]
            time = "" if one.virtual_time is None else f"{one.virtual_time:.6g}"
            found.append((name, names.get(one.path, ""), one.status, one.progress, time, *one.last))
            reasons += [f"{name}: {one.why}"] if one.why and one.status != "running" else []
        else:
            found.append(_of_folder(name, inside))
    metrics = {line[-2] for line in found} - {""}
    if len(metrics) == 1:
        return (*_HEADS, metrics.pop()), [(*line[:-2], line[-1]) for line in found], reasons
    return (*_HEADS, "last"), [(*line[:-2], " ".join(line[-2:]).strip()) for line in found], reasons


def labels(views: Sequence[View], seeds: bool = True) -> dict[str, str]:
    """Returns, by a run's path, what tells it from the others: values of the keys in which they differ.

    seeds: whether the seed is one of them.
    """
    runs = RunSet([one.run for one in views if one.run])
    if not runs.runs:
        return {}
    groups, seeds = grouped(runs, named=False), seeds and "seed" in runs.varying
    of = {run.id: group.label for group in groups.groups for run in group.runs}
    return {
        one.path: of[one.run.id] + (f", seed={one.run.info.get('seed')}" if seeds else "") for one in views if one.run
    }


def states(views: Iterable[View]) -> str:
    """Says how many runs there are of each status."""
    return ", ".join(f"{number} {status}" for status, number in Counter(one.status for one in views).items())


def _of_folder(name: str, inside: Sequence[View]) -> Line:
    """Returns the line of a folder, such as that of a sweep."""
    rounds = [one.rounds for one in inside if one.rounds is not None]
    times = [one.virtual_time for one in inside if one.virtual_time is not None]
    ends = [(one.curves[0].label, one.curves[0].values[-1]) for one in inside if one.curves]
    alike = len({label for label, _ in ends}) == 1
    last = (ends[0][0], _range([value for _, value in ends], ".4g")) if alike else ("", "")
    return f"{name}/", count(len(inside), "run"), states(inside), _range(rounds, "d"), _range(times, ".6g"), *last


def _range(values: Sequence[float], form: str) -> str:
    if not values:
        return ""
    low, high = (f"{end:{form}}" for end in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"
