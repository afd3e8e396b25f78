"""How far a run is, what it has reached and who works, from little reading: of runs that are over, under way or were
killed."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from results.ending import Status, ending
from results.reader import NotARun, Run
from results.run_set import READERS

_KEY = ("subject", "split", "metric")
WINDOW_S = 60.0  # real seconds of a run, up to its last job, over which shares of workers are taken
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
    standing: Status
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
        return self.standing.goes_on

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
    info, ended = run.info, ending(run)
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
        ended.status,
        ended.error or ended.ended_early or ended.diverged or ended.note,
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
    of_round = frame.groupby([*_KEY, "round"], observed=True)["value"]
    means = of_round.mean().where(of_round.count() == of_round.size())  # NaN where a member has NaN
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


class AtWork(NamedTuple):
    """A worker of a run."""

    worker: str
    node: str
    task: str  # its last job
    seconds: float  # real time that this took
    ago_s: float  # real time from its end to that of the run's last job
    share: float  # of the last minute of the run, how much the worker spent on jobs


def at_work(run: Run) -> list[AtWork]:
    """Returns the workers of a run, in the order of their names; none before the first job is done."""
    frame = run.table("tasks", ["worker", "node", "task", "started_s", "seconds"]).to_pandas()
    if frame.empty:
        return []
    frame["ended_s"] = frame["started_s"] + frame["seconds"]
    end, start = frame["ended_s"].max(), frame["started_s"].min()
    since = max(start, end - WINDOW_S)
    window = max(end - since, 1e-9)
    found = []
    for worker, jobs in frame.groupby("worker", observed=True):
        last = jobs.loc[jobs["ended_s"].idxmax()]
        busy = (jobs["ended_s"] - jobs["started_s"].clip(lower=since)).clip(lower=0.0).sum()
        told = str(worker), str(last["node"]), str(last["task"])
        found.append(AtWork(*told, float(last["seconds"]), float(end - last["ended_s"]), min(busy / window, 1.0)))
    return found
