"""The laws of every part that takes part in runs: they end, and give the same bits again, on Ray too."""

import pickle
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from actors import InlinePool, Job, JobFailed, Request
from actors.fault import OURS
from raysim.engine.progress import Progress
from raysim.laws.subject import Broken, Groups, NotTried, Raw, Subject, merged
from raysim.parts.errors import RunFailed
from raysim.parts.own_code import parts_in
from raysim.parts.part import Part
from raysim.parts.process import isolated
from raysim.parts.rng import seed_globals
from raysim.runs.execution import Execution
from raysim.runs.launch import launch, new_folder
from raysim.runs.observing import Observing, observers_of
from raysim.runs.place import RunPlace
from raysim.runs.result import Result
from raysim.runs.run import run
from raysim.scenario import Scenario, parse_scenario
from raysim.scenario.dependencies import depends_on
from raysim.workers.returned import thorough
from results.columns import is_marked
from results.schemas import TABLES


class Finished:
    """What is kept of a run whose folder is gone."""

    def __init__(self, result: Result, changed: Sequence[str] = ()) -> None:
        """changed: the attributes of its parts that the run has changed."""
        self.digest, self.vectors, self.info, self.changed = result.digest, result.vectors(), result.info, changed
        self.status: str = self.info["status"]
        self.tables = {name: _digested(result.table(name)) for name in TABLES}
        self.updates: list[dict[str, Any]] = result.table("updates").to_pylist()


class PicklingPool(InlinePool):
    """Sends every value through pickle, as a checkpoint or another process does."""

    def submit(self, group: str, request: Request[Any, Any], **options: Any) -> Job[Any, Any]:
        job = super().submit(group, request, **options)
        for value in job.values:
            value.content = pickle.loads(pickle.dumps(value.content))
        return job


def carried_out(raw: Raw, pool: InlinePool | None = None, *, stop_after: int | None = None, seed: int = 0) -> Finished:
    """Runs a scenario in this process. Raises Broken if it fails.

    seed: of the global generators, so that draws from them show.
    stop_after: the number of rounds after which the run is interrupted, and then continues from its checkpoint.
    """
    changed: list[str] = []
    with tempfile.TemporaryDirectory() as folder, thorough():
        for goes_on in (False, True) if stop_after else (False,):
            scenario = parse_scenario(raw, "the trial")
            before = _attributes(scenario)
            facts = {"depends_on": depends_on(scenario)}
            execution = Execution(scenario, Path(folder) / "run", goes_on=goes_on, facts=facts)
            try:
                with isolated(torch=True), closing(execution(pool or InlinePool())) as steps:
                    seed_globals(seed, "the trial")
                    for news in steps:
                        rounds = news.round if isinstance(news, Progress) else 0
                        if stop_after and not goes_on and rounds >= stop_after:
                            break
            except JobFailed as failed:
                raise Broken(str(failed)) from failed
            changed += [name for name, value in _attributes(scenario).items() if before.get(name) != value]
        return Finished(Result(execution.folder), changed)


def _attributes(scenario: Scenario) -> dict[str, str]:
    """Returns what the parts of a scenario that are a user's own hold, as text by attribute, such as Mine._momentum."""
    return {
        f"{type(part).__name__}.{name}": str(value)
        for part in parts_in(scenario)
        if type(part).__module__.partition(".")[0] not in OURS
        for name, value in {**vars(part), **(part.__pydantic_private__ or {})}.items()
        if not isinstance(value, Part)
    }


def _digested(table: pa.Table) -> pa.Table:
    """Returns the columns of a table that do not differ between two runs of one scenario, but for the run's id."""
    measured = [c.name for c in table.schema if is_marked(c, "wall") or is_marked(c, "estimated")]
    return table.drop_columns(["run", *measured])


def its_keys_are_right(subject: Subject) -> None:
    """It can be made with these keys."""
    subject.made  # noqa: B018 - making it checks it


def a_scenario_can_name_it(subject: Subject) -> None:
    """A scenario file can name it, and fits together."""
    subject.scenario  # noqa: B018 - loading it checks it


def it_runs(subject: Subject) -> None:
    """A run with it goes from start to end without breaking a rule, and all that it computes is finite."""
    ended = first_run(subject)
    if ended.status != "finished":
        raise Broken(f"the trial: must end with the status finished, got {ended.status!r}")
    if found := ended.info["diverged"]:
        raise Broken(f"the trial: must stay finite, but {found['what']} was not, in round {found['round']}")


def the_same_bits_again(subject: Subject) -> None:
    """A second run gives the same bits, whatever the global generators hold, with all that is kept pickled."""
    same(first_run(subject), carried_out(subject.raw, PicklingPool(), seed=1), "the second run")


def the_same_bits_when_it_goes_on(subject: Subject) -> None:
    """A run that is interrupted and continues from its checkpoint gives the same bits."""
    first = first_run(subject)
    ended = carried_out(subject.raw, stop_after=max(1, first.info["totals"]["rounds"] // 2))
    if not any(resumed["version"] for resumed in ended.info["resumed"]):
        raise NotTried("the run was over before it could be interrupted")
    same(first, ended, "the run that continued")


def the_same_bits_on_ray(subject: Subject) -> None:
    """Ray gives the same bits, with one worker and with two."""
    for workers in (1, 2):
        raw = merged(subject.raw, {"resources": {"client_actors": workers}})
        with tempfile.TemporaryDirectory() as folder:
            try:
                ended = Finished(run(parse_scenario(raw, "the trial"), out=folder, progress=False))
            except RunFailed as failed:
                raise Broken(f"on Ray: {failed}") from failed
        same(first_run(subject), ended, f"the run on Ray with {workers} of `resources.client_actors`")


@lru_cache(maxsize=1)
def first_run(subject: Subject) -> Finished:
    """Returns the run of the trial in this process, which is made once."""
    return carried_out(subject.raw)


def same(one: Finished, other: Finished, which: str) -> None:
    """Raises Broken unless two runs have the same digest. which: how the text calls the other one."""
    if one.digest == other.digest:
        return
    parts = [part for part in ("model", "tables") if one.info["digest"][part] != other.info["digest"][part]]
    text = f"must have the digest of the first run, {one.digest[:12]}, got {other.digest[:12]}"
    told = [f"{which}: {text}; {' and '.join(parts)} differ", *_first_difference(one, other)]
    if kept := sorted({*one.changed, *other.changed}):
        told.append(f"runs change {', '.join(kept)}, which no checkpoint keeps")
    cure = "Draw from the generators that are given, do not read the clock, and keep nothing outside of the states"
    raise Broken(f"{'; '.join(told)}. {cure}")


def _first_difference(one: Finished, other: Finished) -> Iterator[str]:
    """Yields where the tables of two runs first differ, in words, if they do."""
    for name in ("updates", "exchanges", "steps", "evaluations", "coefficients"):
        rows, others = (run.tables[name].to_pylist() for run in (one, other))
        for place, (row, its) in enumerate(zip(rows, others, strict=False)):
            if differing := [key for key in row if str(row[key]) != str(its.get(key))]:
                key = differing[0]
                yield f"first in row {place} of the table {name}, whose {key} is {row[key]} and {its.get(key)}"
                return


RUNS: Groups = ((a_scenario_can_name_it,), (it_runs,), (the_same_bits_again,), (the_same_bits_when_it_goes_on,))
"""The laws of a part that takes part in runs. Each builds on the one before it."""


# --- observers --------------------------------------------------------------------------------------------------------


def it_sees_a_run(subject: Subject) -> None:
    """It sees a run from its begin to its end, and raises no exception."""
    _, observing = observed(subject)
    if observing.failures:
        raise Broken("\n".join(observing.failures.values()))


def it_changes_no_bits(subject: Subject) -> None:
    """The run has the same bits as without the observer."""
    seen, _ = observed(subject)
    if seen.status == "stopped":
        raise NotTried(f"it ends the run: {seen.info['ended_early']}")
    same(first_run(subject), seen, "the run that it sees")


def observed(subject: Subject) -> tuple[Finished, Observing]:
    """Returns a run of the trial in this process, and what its observer was told."""
    scenario = subject.scenario
    observing = Observing(scenario, observers_of(scenario))
    with tempfile.TemporaryDirectory() as folder:
        execution = Execution(scenario, new_folder(Path(folder), "trial"))
        result = launch(scenario, lambda: execution, RunPlace(inline=True), observing)
        return Finished(result), observing


OBSERVER: Groups = ((a_scenario_can_name_it,), (it_sees_a_run,), (it_changes_no_bits,))
