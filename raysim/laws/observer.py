"""The laws of observers: they see a run from its begin to its end, and change nothing of it."""

import tempfile
from pathlib import Path

from raysim.laws import runs
from raysim.laws.law import Broken, Groups, NotTried
from raysim.laws.subject import Subject
from raysim.runs.execution import Execution
from raysim.runs.launch import launch, new_folder
from raysim.runs.observing import Observing, observers_of
from raysim.runs.place import RunPlace


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
    runs.same(runs.first_run(subject), seen, "the run that it sees")


def observed(subject: Subject) -> tuple[runs.Finished, Observing]:
    """Returns a run of the trial in this process, and what its observer was told."""
    scenario = subject.scenario
    observing = Observing(scenario, observers_of(scenario))
    with tempfile.TemporaryDirectory() as folder:
        execution = Execution(scenario, new_folder(Path(folder), "trial"))
        result = launch(scenario, lambda: execution, RunPlace(inline=True), observing)
        return runs.Finished(result), observing


LAWS: Groups = ((runs.a_scenario_can_name_it,), (it_sees_a_run,), (it_changes_no_bits,))
