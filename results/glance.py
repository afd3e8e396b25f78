"""How far a run is and what it has reached, from little reading: of runs that are over, under way or were killed."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from results.ending import ended_early, error_line
from results.reader import NotARun, Run
from results.run_set import READERS

UNDER_WAY = ("running", "forking", "killed?")  # what a run may say that still goes on
_KEY = ("subject", "split", "metric")
_OF_PEERS = "^consensus|_min$|_max$|_gap$"  # metrics of how peers differ


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
class Glance:
    """A run at one moment."""

    run: Run
    standing: str
    why: str | None
    """Why it failed or ended early, or what is known of a run that is under way or was killed."""
    rounds: int
    """That are over."""
    of: int | None
    """Rounds of the whole run; None if something else ends it."""
    virtual_time: float
    sent: int | None
    """Bytes of updates and messages, up and down; None before the first step."""
    wall_s: float | None
    """Real time, in seconds."""
    curves: tuple[Curve, ...]
    """The first is the one to show: accuracy before loss before others, of the global model and on test samples if
    there are such."""

    @property
    def progress(self) -> str:
        """Rounds that are over, and of how many."""
        return str(self.rounds) if self.of is None else f"{self.rounds}/{self.of}"

    @property
    def goes_on(self) -> bool:
        return self.standing in UNDER_WAY

    @property
    def waiting(self) -> str:
        """Says what it waits for, since when, and how long it took before; why it ended where it does not go on."""
        if not self.goes_on:
            return self.why or ""
        silent = (datetime.now(UTC) - self.run.last_written).total_seconds()
        if not self.rounds:
            return f"waits for its first round, {silent:.0f} s since it wrote"
        pace = f"; a round takes {self.wall_s / self.rounds:.2g} s" if self.wall_s else ""
        return f"waits for round {self.rounds + 1}, {silent:.0f} s since it wrote{pace}"


def glance(run: Run) -> Glance:
    """Looks at a run. Raises NotARun where its files are damaged."""
    info = run.info
    steps = run.table("steps", ["round", "virtual_time", "up_bytes", "down_bytes", "elapsed_s"])
    columns = [*_KEY, "round", "virtual_time", "value"]
    evaluations = run.table("evaluations", columns, pc.is_valid(pc.field("value")))
    totals, scenario = info.get("totals") or {}, info.get("scenario") or {}
    tables = (steps, evaluations)
    last = [top for table in tables if (top := pc.max(table["round"]).as_py()) is not None]
    times = [top for table in tables if (top := pc.max(table["virtual_time"]).as_py()) is not None]
    sent = [total for name in ("up_bytes", "down_bytes") if (total := pc.sum(steps[name]).as_py()) is not None]
    return Glance(
        run,
        run.standing,
        error_line(info) or ended_early(info) or run.diverged or run.note,
        totals.get("rounds", max(last, default=-1) + 1),
        (scenario.get("run") or {}).get("rounds"),
        totals.get("virtual_time", max(times, default=0.0)),
        sum(sent) if sent else None,
        (info.get("seconds") or {}).get("total") or pc.max(steps["elapsed_s"]).as_py(),
        tuple(sorted(_curves(evaluations), key=_first)),
    )


def glances(runs: Sequence[Run], damaged: list[str] | None = None) -> list[Glance]:
    """Looks at runs; those with damaged files are left out. damaged: where it is given, it gets a line for each."""

    def look(run: Run) -> Glance | None:
        try:
            return glance(run)
        except NotARun as error:
            if damaged is not None:
                damaged.append(f"{error}; left out")
            return None

    with ThreadPoolExecutor(READERS) as readers:
        return [found for found in readers.map(look, runs) if found is not None]


def _curves(evaluations: pa.Table) -> list[Curve]:
    frame = evaluations.to_pandas()
    frame = frame[~((frame["subject"] == "peers") & frame["metric"].str.contains(_OF_PEERS))]
    means = frame.groupby([*_KEY, "round"], observed=True)["value"].mean()
    found = means.reset_index().groupby(list(_KEY), observed=True)
    return [
        Curve(str(subject), str(split), str(metric), tuple(of["round"]), tuple(of["value"]))
        for (subject, split, metric), of in found
    ]


def _first(curve: Curve) -> tuple[bool, ...]:
    return (
        *(curve.metric != metric for metric in ("accuracy", "loss")),
        *(curve.subject != subject for subject in ("global", "client", "peers")),
        *(curve.split != split for split in ("test", "validation")),
    )
