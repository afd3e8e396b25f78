"""What is to be run, and in which folder; whose the folder is meanwhile; and what is said of a job that fails."""

import traceback
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from actors import InlinePool, JobFailed, LocalPool, Pool
from raysim.engine.checkpoint import Checkpoint
from raysim.runs.record import RunRecord
from raysim.scenario import Scenario
from raysim.scenario.dependencies import code_changes
from results import CannotWrite, this_process
from results.info import Status, state
from results.texts import as_word


@dataclass(frozen=True)
class RunOrder:
    """Which run is to be carried out, in which folder, from where on, and by which process."""

    scenario: Scenario
    folder: Path
    goes_on: bool = False  # whether the folder holds a run that ended early and is resumed
    until: int | None = None  # the version of the model, or rounds of peers, after which it stops with a checkpoint
    tables: frozenset[str] = frozenset()  # tables whose new rows it yields, too
    facts: dict[str, Any] = field(default_factory=dict)  # further fields of its record, such as the origin of a fork
    past: RunRecord | None = None  # that of the run whose past a new fork does again
    holder: dict[str, Any] = field(default_factory=this_process)  # the process that made this; if it ends, the run does

    @property
    def run(self) -> str:
        """The run's id, which is the name of its folder."""
        return self.folder.name

    @property
    def cure(self) -> str:
        """What a user can do once the run has ended early."""
        if "forking" in self.facts:
            return "`raysim fork` starts it again"
        return f"`raysim resume {as_word(self.folder)}` continues it"

    def begun(self, before: RunRecord | None, checkpoint: Checkpoint | None) -> RunRecord:
        """Returns the record at the start, or when the run continues. before: its record before that, if it has one."""
        status = Status.RUNNING if self.until is None else Status.FORKING
        record = RunRecord.begun(self.scenario, self.run, status, **self.facts | {"holder": self.holder})
        if self.goes_on:  # the first run of a new fork is no resumption
            resumed = self.facts.keys().isdisjoint(("forking", "forked_from"))
            record = record.going_on(before, checkpoint, resumed=resumed)
        if not checkpoint and (earlier := before or self.past):
            what = "did the past of the other run again" if self.past else "began again"
            record = record.noting(*code_changes(earlier.content, record.content, what))
        return record

    def unwritten(self, problem: CannotWrite) -> JobFailed:
        """Returns the failure of a run that cannot write."""
        return JobFailed("writing", f"{problem}; what was written before is readable, and {self.cure}", "")

    def ended_by(self, error: BaseException, pool: Pool) -> tuple[Status, str | None, JobFailed | None]:
        """Returns how an exception has ended the run, the error for run.json, and what to raise in its place, if not
        itself. pool: where the run was carried out."""
        if asks_to_end(error):
            return Status.INTERRUPTED, None, None
        if isinstance(error, JobFailed):
            failure = explained(error, self.scenario, pool)
            return Status.FAILED, f"{failure}\n{failure.traceback}".strip(), failure
        if isinstance(error, CannotWrite):
            return Status.FAILED, str(error), self.unwritten(error)
        failed = JobFailed.by(error, "scheduler")  # of the timeline, such as picks that cannot be followed
        text = f"{failed}\n{''.join(traceback.format_exception(error))}"
        return Status.FAILED, text, None if isinstance(error, Exception | SystemExit) else failed

    def settle(self, status: Status, error: str | None = None, early: str | None = None) -> Status:
        """Corrects run.json after the run, if the process that did the run could not write how it ended: because it
        died, or because the caller stopped the run, for a reason that only the caller knows.

        If the run had reached its end by then, run.json stays as it is. Returns the status.
        """
        record = RunRecord.read(self.folder) or self.begun(None, None)
        if record.holder != self.holder and state(record.holder) != "gone":  # another process continues with the run
            return record.status
        stopped = (record.status, status) == (Status.INTERRUPTED, Status.STOPPED)
        if record.status in (Status.RUNNING, Status.FORKING) or stopped:
            record = record.ended(status, error=error or record.error, ended_early=early)
            with suppress(CannotWrite):  # a reader then sees that the process is gone
                record.write(self.folder)
        return record.status


def asks_to_end(error: BaseException) -> bool:
    """Whether an exception ends the run from outside: Ctrl-C, or GeneratorExit where the caller stops iterating."""
    closed = isinstance(error, GeneratorExit) and error.__traceback__ is not None and not error.__traceback__.tb_next
    return closed or isinstance(error, KeyboardInterrupt)


def explained(failed: JobFailed, scenario: Scenario, pool: Pool | None = None) -> JobFailed:
    """Returns the failure of a job, with advice in terms of the scenario.

    If memory ran out, it says which keys to change. If it was raised in code of the user's own, it says where.
    pool: where the job was carried out; None: on Ray.
    """
    cause = failed.cause
    if failed.memory is not None:
        training = f"local.batch_size ({scenario.local.batch_size}) or resources.chunk ({scenario.resources.chunk})"
        asked, kind = scenario.resources, "gpus" if failed.memory == "gpu" else "cpus"
        share = f"raise resources.{kind}_per_client ({getattr(asked, f'{kind}_per_client'):g}), or "
        share = f"lower resources.client_actors ({asked.client_actors}), {share}"
        if isinstance(pool, LocalPool):
            share = "take fewer worker processes (--local), or "
        elif isinstance(pool, InlinePool):
            share = ""
        cause += f"; {share}lower {training}"
    if failed.frames:
        cause += f" - raised in {', '.join(failed.frames[-1])}"
    return failed if cause == failed.cause else JobFailed(failed.label, cause, failed.traceback)
