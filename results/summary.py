"""Sums up a run from its tables and run.json alone, whether it is over, under way or was killed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Group, RenderableType
from rich.filesize import decimal
from rich.table import Column, Table
from rich.text import Text

from results.info import Status, at, directions, ended_by
from results.reader import Run
from results.readings import MOMENT, WHAT, over_members
from results.schemas import TABLES
from results.texts import count, plain_table

if TYPE_CHECKING:
    import pandas as pd

STATUSES = ("used", "discarded", "dropped", "unfinished")


class Summary(NamedTuple):
    """A run's outcome."""

    title: str
    status: Status
    facts: dict[str, str]
    """What is known of it, by name, such as "staleness"; what it does not have, or does not say yet, is missing."""
    scores: pd.DataFrame
    """A row for each metric: subject, split, metric, and over the run's evaluations the first value, the best one with
    its step, and the last one; of clients or peers, their mean, and of the last evaluation how many members there are,
    with the lowest and the highest value. NaN where it is not known, or whether larger is better is not."""

    def __rich__(self) -> RenderableType:
        """What a terminal shows."""
        facts = Table.grid(Column(), Column(overflow="fold"), padding=(0, 2))  # else a long path would be cut short
        for name, value in self.facts.items():
            facts.add_row(Text(name, style="dim"), Text(value))
        title = Text.assemble((self.title, "bold"), "  ", (self.status, self.status.colour))
        if not len(self.scores):
            return Group(title, facts)
        return Group(title, facts, Text(), plain_table(self.texts, 3, gap=1))

    def _repr_html_(self) -> str:
        import pandas as pd

        facts = pd.DataFrame({"": self.facts.keys(), self.status: self.facts.values()})
        return facts.to_html(index=False) + self.texts.to_html(index=False)

    @property
    def texts(self) -> pd.DataFrame:
        """The scores as texts, with the number of members before the subject."""
        shown = self.scores.dropna(axis="columns", how="all")
        texts = shown.map(lambda value: value if isinstance(value, str) else _number(value))
        if "members" in texts:
            several = [_members(number, of) for number, of in zip(shown["members"], texts["subject"], strict=True)]
            texts = texts.drop(columns="members").assign(subject=several)
        return texts


def summary(run: Run) -> Summary:
    """Sums up a run. Raises NotARun for a folder that is not a run's."""
    for name in TABLES:
        run.require_rows(name)
    steps = run.table("steps", ["round", "virtual_time", "up_bytes", "down_bytes", "elapsed_s"])
    evaluations = run.table("evaluations", [*WHAT, *MOMENT, "value"])
    updates = run.table("updates", ["status", "staleness", "solver_iterations", "unconverged"])
    taken = at(run.info, "totals", "steps") or len(steps)  # a run that is kept may have its evaluations alone
    found = {**_endings(run, taken), **_done(run, steps, taken, evaluations), **_updates(run, updates, steps)}
    found["privacy"] = guarantee_of(run.info.get("privacy"))
    found["digest"] = at(run.info, "digest", "run")
    facts = {name: text for name, text in found.items() if text}
    return Summary(str(run.info.get("name") or run.id), run.standing, facts, _scores(evaluations, run.info))


def _endings(run: Run, steps: int) -> dict[str, str | None]:
    """Returns how the run ended, and why."""
    info = run.info
    idle = run.over and not steps
    notes = [run.note, "the server never stepped, so the model is still the initial one" if idle else None]
    left, best = info.get("left"), info.get("best")
    return {
        "note": "; ".join(filter(None, [*notes, *map(str, info.get("notes") or ())])),
        "error": info.get("error"),
        "history": run.history,
        "ended by": ended_by(info),
        "ended early": run.ended_early,
        "left": left and f"the model of step {left['step']}, virtual time {left['virtual_time']:g}",
        "best": best
        and f"{best['split']} {best['metric']} {best['value']:.4g} at step {best['step']}, in best.safetensors",
        "diverged": run.diverged,
        "mostly helps": run.diverged and Status.DIVERGED.cure,
    }


def _done(run: Run, steps: pa.Table, taken: int, evaluations: pa.Table) -> dict[str, str | None]:
    """Returns what was asked for, and how much of it was done."""
    parts = [at(run.info, "scenario", key, "name") for key in ("algorithm", "data", "model", "topology")]
    clients, seed = at(run.info, "scenario", "data", "clients"), run.info.get("seed")
    whom = clients and (count(clients, "client") if parts[3] is None else f"{count(clients, 'peer')} ({parts[3]})")
    of_scenario = [*parts[:2], whom, parts[2], None if seed is None else f"seed {seed}"]
    rounds, last = at(run.info, "totals", "rounds"), _largest(steps["round"], evaluations["round"])
    rounds = rounds if rounds is not None else 0 if last is None else last + 1  # they are counted from 0
    time = at(run.info, "totals", "virtual_time") or _largest(steps["virtual_time"], evaluations["virtual_time"]) or 0.0
    wall_s = at(run.info, "seconds", "total") or _largest(steps["elapsed_s"])
    unit = at(run.info, "scenario", "world", "delay", "unit") or ""
    done = [count(rounds, "round"), count(taken, "step"), f"virtual time {_number(time)} {unit}".rstrip()]
    done += [] if wall_s is None else [f"{wall_s:.1f} s real time"]
    return {"scenario": ", ".join(filter(None, of_scenario)), "done": ", ".join(done)}


def _updates(run: Run, updates: pa.Table, steps: pa.Table) -> dict[str, str | None]:
    """Returns what became of updates, and how much was sent."""
    statuses = pc.value_counts(updates["status"].cast(pa.string())).to_pylist()
    counts = {status["values"]: status["counts"] for status in statuses}
    messages, lost = at(run.info, "totals", "sent"), at(run.info, "totals", "lost")
    used = updates.filter(pc.field("status") == "used")
    mean, most, iterations = pc.mean(used["staleness"]).as_py(), pc.max(used["staleness"]).as_py(), None
    if (solved := pc.mean(used["solver_iterations"]).as_py()) is not None:
        unconverged = pc.sum(used["unconverged"]).as_py()
        iterations = f"{_number(solved)} iterations on average in training, {unconverged} did not converge"
    up, down = (pc.sum(steps[name]).as_py() for name in ("up_bytes", "down_bytes"))
    known = [f"{at(run.info, 'totals', status) or counts.get(status, 0)} {status}" for status in STATUSES]
    became = {"updates": ", ".join(known)}
    if messages is not None:
        became = {"mixed": f"{counts.get('used', 0)} times, {messages} messages sent, {lost} lost"}
    return {
        **became,
        "staleness": None if mean is None else f"mean {_number(mean)}, largest {_number(most)}",
        "solves": iterations,
        "sent": None if up is None or down is None else f"{decimal(up)} up, {decimal(down)} down",
        "models": "; ".join(_models(run.info.get("levels") or run.info.get("models") or {})) or None,
    }


def _models(costs: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yields what a client's model of each level or architecture is, where clients' models differ. Levels that are
    drawn at each dispatch have no number of clients."""
    for name, cost in costs.items():
        of = [count(cost["clients"], "client")] if "clients" in cost else []
        sizes = f"{cost['parameters']:,} parameters, {decimal(cost['memory_bytes'])} to train"
        yield f"{name}: {', '.join([*of, sizes])}, {decimal(cost['up_bytes'])} up"


def guarantee_of(found: Mapping[str, Any] | None) -> str | None:
    """Returns what a run guarantees, in words. found: the key `privacy` of run.json."""
    if found is None:
        return None
    values = (found["epsilon"], found["epsilon_median"])
    of, median = ("infinite" if value is None else f"{value:.7g}" for value in values)
    as_if = "".join(f", as if {key} were {value:,}" for key, value in found.get("as_if", {}).items())
    clients = f"epsilon {of} for the most exposed client, {median} for the median one"
    uses = f"at most {count(found['largest_uses'], 'use')} of a client"
    return f"{clients}, at delta {found['delta']:g}; noise multiplier {found['multiplier']:.7g}, {uses}{as_if}"


def _largest(*columns: pa.ChunkedArray[Any]) -> Any:
    """Returns the largest value of all columns, or None where they are empty."""
    return max((top for column in columns if (top := pc.max(column).as_py()) is not None), default=None)


def _scores(evaluations: pa.Table, info: Mapping[str, Any]) -> pd.DataFrame:
    import pandas as pd

    larger = directions(info)
    frame = over_members(evaluations).to_pandas().astype(dict.fromkeys(WHAT, str))
    # Of peers together, only how far they are apart: the scores of the subject peer have the others, too.
    frame = frame[(frame["subject"] != "peers") | frame["metric"].str.startswith("consensus")]
    of_metric = sorted(frame.groupby([*WHAT]), key=lambda one: (one[0][0] != "global", one[0]))
    rows = [[*key, *_score(key[0], rows, larger.get(key[2]))] for key, rows in of_metric]
    return pd.DataFrame(rows, columns=[*WHAT, "first", "best", "at step", "last", "members", "lowest", "highest"])


def _score(subject: str, rows: pd.DataFrame, larger: bool | None) -> list[float]:
    """Returns the numbers of a metric's row."""
    known, end = rows.dropna(subset="value"), rows.iloc[-1]
    best = [math.nan, math.nan]
    if larger is not None and len(known):
        place: Any = known["value"].idxmax() if larger else known["value"].idxmin()
        best = [*rows[["value", "step"]].loc[place]]
    of_members = [math.nan] * 3 if subject in ("global", "peers") else [*end[["members", "lowest", "highest"]]]
    return [rows["value"].iloc[0], *best, end["value"], *of_members]


def _members(number: float, subject: str) -> str:
    """Returns a subject with how many it is, such as 5 clients; NaN: it is none that are counted."""
    if math.isnan(number):
        return subject
    return f"{number:.0f} unseen" if subject == "unseen" else count(int(number), subject)


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.0f}" if float(value).is_integer() else f"{value:.4g}"
