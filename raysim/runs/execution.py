"""Carries out one run in its folder: in the scheduler actor, or in this process if the run is not on Ray."""

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from actors import JobFailed, Pool
from raysim.engine.checkpoint import Checkpoint
from raysim.engine.families import family_of
from raysim.engine.loop import Loop
from raysim.engine.progress import Progress
from raysim.engine.recorder import Diverged, Recorder
from raysim.engine.saver import Saver
from raysim.engine.simulation import Final, Simulation
from raysim.parts.errors import DamagedCheckpoint
from raysim.parts.part import as_lists
from raysim.runs.observing import NewRows
from raysim.runs.order import RunOrder
from raysim.runs.origin import kinds_of, what_differs, workers_of
from raysim.runs.record import RunRecord, digest, digests, save
from results import CannotWrite, Writer
from results.disk import replacing, require_space
from results.info import Status

LEAVE_S = 10.0  # seconds that workers of an interrupted run may take to hand over its last model


@dataclass(frozen=True)
class Execution(RunOrder):
    """A run that can be carried out: call it with a pool. It writes tables, models and run.json into its folder."""

    def __call__(self, pool: Pool) -> Generator[Progress | NewRows, None, None]:
        """Does the run. Yields Progress on the way, and before each Progress the new rows of the tables that are asked
        for.

        Raises JobFailed if a job fails. The tables then stay readable, run.json says what failed, and the run can
        continue from its checkpoint. It also raises JobFailed, and changes nothing, if it should resume a run and a
        file of the checkpoint is damaged. A run that diverges just ends, without models; its digest is that of its
        tables.
        """
        yield from _Attempt(self, pool).steps()


class _Attempt:
    """One attempt to carry out a run, from its beginning or its checkpoint: the run's record, as it changes, and what
    the steps of the run share. Making it changes nothing in the folder."""

    record: RunRecord
    writer: Writer
    recorder: Recorder
    simulation: Simulation[Any, Any]

    def __init__(self, execution: RunOrder, pool: Pool) -> None:
        self.began = time.perf_counter()
        self.execution, self.pool, self.folder = execution, pool, execution.folder
        try:
            self.checkpoint = Checkpoint.read(self.folder) if execution.goes_on else None
            if self.checkpoint:
                self.checkpoint.fetch()  # all that it needs, before anything is written
        except DamagedCheckpoint as damaged:
            raise JobFailed("checkpoint", str(damaged), "") from None
        self.before = RunRecord.read(self.folder) if execution.goes_on else None
        self.saver: Saver | None = None
        self.loop_s: float | None = None  # how long the whole loop took, once it is over

    def steps(self) -> Iterator[Progress | NewRows]:
        """Yields what the run yields; see `Execution`."""
        self._begin()
        try:
            for progress in self._loop():
                self._check_workers()
                for table, rows in self.writer.new_rows().items():  # no `yield from`: see `asks_to_end`
                    yield NewRows(table, rows)
                yield progress
            self._finish()
            self.loop_s = self.simulation.stopwatch.seconds
        except Diverged:
            self.record = replace(
                self.record,
                status=Status.DIVERGED,
                parameters=self.simulation.described.parameters,
                digest=digest({}, self.writer.digest()),
            )
        except BaseException as error:
            status, text, failure = self.execution.ended_by(error, self.pool)
            self.record = replace(self.record, status=status, error=text)
            if failure:
                raise failure from (error if isinstance(error, JobFailed) else None)
            raise
        finally:
            self._end()
        for table, rows in self.writer.new_rows().items():
            yield NewRows(table, rows)

    def _warn(self, text: str) -> None:
        self.pool.warnings.append(f"{self.execution.run}: {text}")

    def _begin(self) -> None:
        """Writes run.json, and opens the tables after the rows that the checkpoint includes."""
        execution, checkpoint = self.execution, self.checkpoint
        self.record = execution.begun(self.before, checkpoint)
        known = {*((self.before and self.before.notes) or ()), *execution.facts.get("notes", ())}
        for note in self.record.notes:
            if note not in known:
                self._warn(note)
        keep = None if not execution.goes_on else checkpoint.rows if checkpoint else {}  # {}: it starts again
        try:
            self.record.write(self.folder)
            self.writer = Writer(self.folder, execution.run, keep=keep, heard=execution.tables)
        except CannotWrite as problem:
            raise execution.unwritten(problem) from None
        self.recorder = family_of(execution.scenario).recorder(self.writer)
        if checkpoint:
            self.recorder.recall(checkpoint.totals, checkpoint.memory["recorder"])
            self.recorder.virtual_time = checkpoint.virtual_time

    def _loop(self) -> Iterator[Progress]:
        """Starts the simulation, and returns the loop that carries it out.

        Notes what the data were taken for, and where the run does not do exactly what the scenario asks for. Raises
        CannotWrite if there is no room for the models that the run will leave.
        """
        scenario, until = self.execution.scenario, self.execution.until
        self.simulation = family_of(scenario).start(self.pool, self.recorder, self.checkpoint)
        self._check_workers()
        described = self.simulation.described
        several = scenario.run.save_clients or not scenario.has_server
        require_space(self.folder, 4 * described.parameters * (len(described.samples) if several else 1))
        for note in described.notes:
            self._warn(note)
        self.record = replace(self.record.noting(*described.notes), data=described.meaning)
        for name, content in described.files.items():
            with replacing(self.folder / name) as file:
                file.write_bytes(content)
        parts = (self.pool, self.recorder, self.simulation)
        self.saver = Saver(self.folder, scenario, *parts, self.checkpoint, until)
        return iter(Loop(self.simulation, self.pool, self.saver, self.recorder, scenario.run.rounds))

    def _finish(self) -> None:
        """Does what is left after the loop, and notes that the run is finished; of the first part of a fork, checks
        that it came to its version."""
        if self.saver:
            self.writer.flush()
            self.saver.close()  # before models are fetched and saved, which takes time and memory
        if self.execution.until is None:
            final = self.simulation.finish()
            found = digest(final.model, self.writer.digest()) | digests(final)
            self._save_models(final, status=Status.FINISHED, digest=found)
        elif self.saver and not self.saver.reached:
            text = f"must reach version {self.execution.until} well before its end, but reached "
            text += f"{self.recorder.totals['steps']}; take an earlier version, or more rounds"
            raise JobFailed("fork", f"the run {text}", "")

    def _leave_models(self) -> None:
        """Writes the last good models of a run that ends early.

        Not of one that failed, which may have lost what it needs, and often continues at once.
        """
        if self.record.status is Status.INTERRUPTED:  # a stopped run is an interrupted one by now
            self.pool.spare(LEAVE_S)
        if left := self.simulation.left():
            final, made = left
            self._save_models(final, left=made | digests(final))

    def _save_models(self, final: Final, **noted: Any) -> None:
        """Writes models, and notes in the record how `Result` builds them anew. noted: further fields."""
        described = self.simulation.described
        save(self.folder, final, described.entries)
        shape = as_lists(described.shape)
        about: dict[str, Any] = {"parameters": described.parameters, "input_shape": shape, "classes": described.classes}
        self.record = replace(self.record, **about, **noted)

    def _check_workers(self) -> None:
        """Updates the record's workers and their machines, if workers have come or gone.

        Warns if the machines differ so that they may give different bits.
        """
        if (workers := workers_of(self.pool.processes)) == self.record.workers:
            return
        known, found = self.record.machines, kinds_of(self.pool.machines)
        self.record = replace(self.record, workers=workers, machines=found)
        self.record.write(self.folder)
        if different := what_differs(known or found, found):
            text, to_note = different
            self._warn(text)
            self.record = self.record.noting(*[text] * to_note)

    def _end(self) -> None:
        """Makes the last checkpoint of a run that ends early and leaves its models, and writes the record."""
        if self.saver and self.record.status is not Status.FINISHED:
            self._if_possible(self.saver.save)
            if self.record.status in (Status.INTERRUPTED, Status.DIVERGED):
                self._if_possible(self._leave_models)
        total_s = time.perf_counter() - self.began + (self.checkpoint.seconds if self.checkpoint else 0.0)
        self.record = replace(
            self.record.ended(self.record.status, **self.recorder.outcome()),
            machines=kinds_of(self.pool.machines) or self.record.machines or [],
            workers=workers_of(self.pool.processes),
            seconds={"total": total_s, "loop": self.loop_s},
        )
        self._conclude()

    def _if_possible(self, act: Callable[[], None]) -> None:
        """Does it as far as it goes: what ended the run, such as a lost cluster or a full disk, may stop it, too."""
        try:
            act()
        except CannotWrite as problem:
            self._could_not_write(problem)
        except (Exception, KeyboardInterrupt):
            pass

    def _conclude(self) -> None:
        """Writes the last rows and run.json."""
        try:
            try:
                self.writer.close()
                if self.saver:
                    self.saver.close()
            finally:
                self.record = replace(self.record, rows=self.writer.written)
            self.record.write(self.folder)
        except CannotWrite as problem:
            finished = self.record.status is Status.FINISHED
            if finished:
                self.record = replace(self.record, status=Status.FAILED, error=str(problem))
            else:
                self._could_not_write(problem)
            with suppress(CannotWrite):  # it is small and may find room; if not, readers see that the process is gone
                self.record.write(self.folder)
            if finished:
                raise self.execution.unwritten(problem) from None

    def _could_not_write(self, problem: CannotWrite) -> None:
        """Warns that a run that ends early could not write its end. A run that fails needs no warning, because it
        raises an error."""
        if self.record.error is None:
            self.record = replace(self.record, error=str(problem))
            self._warn(self.execution.unwritten(problem).cause)
