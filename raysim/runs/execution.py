"""One run in its folder. The scheduler actor carries it out, or this process if the run is not on Ray."""

import json
import os
import time
import traceback
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from actors import JobFailed, Pool
from raysim.engine.checkpoint import Checkpoint
from raysim.engine.families import family_of
from raysim.engine.loop import Loop
from raysim.engine.progress import Progress
from raysim.engine.recorder import Diverged, Recorder
from raysim.engine.saver import Saver
from raysim.engine.simulation import Simulation
from raysim.observers.gauges import readings
from raysim.parts.errors import DamagedCheckpoint
from raysim.parts.plain import as_lists
from raysim.runs.explained import explained
from raysim.runs.folder import digest, digests, now, run_info, save
from raysim.runs.machines import differences, kinds_of, workers_of
from raysim.runs.observing import NewRows
from raysim.scenario import Scenario
from raysim.scenario.dependencies import code_changes
from raysim.workers.replies import Described
from results import CannotWrite, NotARun, Writer, this_process, write_json
from results.disk import require_space
from results.ending import Status
from results.reader import read_info
from results.texts import as_word
from results.writing_process import state

LEAVE_S = 10.0  # seconds that workers of an interrupted run may take to hand over its last model


class TakenOver(JobFailed):
    """Another process has resumed the run, so this one must not write any more."""


@dataclass(frozen=True)
class Execution:
    """A run that can be carried out: call it with a pool. It writes tables, models and run.json into its folder."""

    scenario: Scenario
    folder: Path
    goes_on: bool = False  # whether the folder holds a run that ended early and is resumed
    until: int | None = None  # the version of the model, or rounds of peers, after which it stops with a checkpoint
    tables: frozenset[str] = frozenset()  # tables whose new rows it yields, too
    facts: dict[str, Any] = field(default_factory=dict)  # further content of run.json, such as the origin of a fork
    past: dict[str, Any] = field(default_factory=dict)  # run.json of the run whose past a new fork does again
    holder: dict[str, Any] = field(default_factory=this_process)  # the process that made this; if it ends, the run does

    @property
    def run(self) -> str:
        """The run's id, which is the name of its folder."""
        return self.folder.name

    @cached_property
    def process(self) -> int:
        """The number of the process that carries it out, once that has begun."""
        return os.getpid()

    @property
    def cure(self) -> str:
        """What a user can do once the run has ended early."""
        if "forking" in self.facts:
            return "`raysim fork` starts it again"
        return f"`raysim resume {as_word(self.folder)}` goes on"

    def __call__(self, pool: Pool) -> Generator[Progress | NewRows, None, None]:
        """Does the run. Yields Progress on the way, and before each Progress the new rows of the tables that are asked
        for.

        Raises JobFailed if a job fails. The tables then stay readable, run.json says what failed, and the run can go on
        from its checkpoint. It also raises JobFailed, and changes nothing, if it should resume a run and a file of the
        checkpoint is damaged. A run that diverges just ends, without models; its digest is that of its tables.
        """
        began = time.perf_counter()
        _ = self.process  # noted before hosted code can copy the process
        checkpoint, before = self._checkpoint(), self._before()
        info = self._info(checkpoint, before)
        known = {*(before.get("notes") or ()), *self.facts.get("notes", ())}
        pool.warnings += [f"{self.run}: {note}" for note in info["notes"] if note not in known]
        writer = self._begin(info, checkpoint)
        family = family_of(self.scenario)
        recorder: Recorder = family.recorder(writer)
        if checkpoint:
            recorder.recall(checkpoint.totals, checkpoint.memory["recorder"])
            recorder.virtual_time = checkpoint.virtual_time
        saver: Saver | None = None
        loop_s = None
        try:
            simulation = family.start(pool, recorder, checkpoint)
            self._check_workers(pool, info, before)
            self._check(pool, info, simulation.described)
            saver = Saver(self.folder, self.scenario, pool, recorder, simulation, checkpoint, self.until)
            for progress in Loop(simulation, pool, saver, recorder, self.scenario.run.rounds):
                self._check_workers(pool, info, before)
                pool.show(readings(progress))
                for table, rows in writer.new_rows().items():  # no `yield from`: Ray sends to this generator
                    yield NewRows(table, rows)
                yield progress
            if self.until is None:
                info |= self._finish(simulation, writer)
            elif not saver.reached:
                came = recorder.totals["steps"]
                text = f"must come to version {self.until} before its end is near, but came to {came}"
                raise JobFailed("fork", f"the run {text}; take an earlier version, or more rounds", "")
            loop_s = simulation.stopwatch.seconds
        except Diverged:
            info |= {"status": "diverged", "parameters": simulation.described.parameters}
            info["digest"] = digest({}, writer.digest())
        except BaseException as error:
            if told := self._told(error, info):
                raise told from (error if isinstance(error, JobFailed) else None)
            raise
        finally:
            if saver and info["status"] not in ("finished", "taken over"):
                with _if_possible():
                    self._save(saver, pool, info)
                if info["status"] in ("interrupted", "diverged"):  # a stopped run is an interrupted one by now
                    with _if_possible():
                        self._leave(simulation, pool, info)
            info["machines"] = kinds_of(pool.machines) or info.get("machines", [])
            info["workers"] = _workers(pool, before)
            info |= {"finished_at": now(), **recorder.outcome()}
            info["ended_by"] = Status(info["status"]).ended_by or info["ended_by"]
            total_s = time.perf_counter() - began + (checkpoint.seconds if checkpoint else 0.0)
            info["seconds"] = {"total": total_s, "loop": loop_s}
            if info["status"] != "taken over":
                self._conclude(writer, pool, info)
        for table, rows in writer.new_rows().items():
            yield NewRows(table, rows)

    def _told(self, error: BaseException, info: dict[str, Any]) -> JobFailed | None:
        """Notes how an exception has ended the run in run.json's content. Returns what to raise in its place, if not
        itself."""
        told: JobFailed | None = None
        if isinstance(error, TakenOver):
            info["status"] = "taken over"
        elif _asks_to_end(error):
            info["status"] = "interrupted"
        elif isinstance(error, JobFailed):
            told = explained(error, self.scenario)
            info |= {"status": "failed", "error": f"{told}\n{told.traceback}".strip()}
        elif isinstance(error, CannotWrite):
            told = self._unwritten(error)
            info |= {"status": "failed", "error": str(error)}
        else:  # of the timeline, such as picks that cannot be followed
            failed = JobFailed.by(error, "scheduler")
            info |= {"status": "failed", "error": f"{failed}\n{''.join(traceback.format_exception(error))}"}
            told = None if isinstance(error, Exception | SystemExit) else failed
        return told

    def _checkpoint(self) -> Checkpoint | None:
        """Returns the checkpoint to go on from, with all that it needs read, before anything is written."""
        try:
            checkpoint = Checkpoint.read(self.folder) if self.goes_on else None
            if checkpoint:
                checkpoint.fetch()
        except DamagedCheckpoint as damaged:
            raise JobFailed("checkpoint", str(damaged), "") from None
        return checkpoint

    def _save(self, saver: Saver, pool: Pool, info: dict[str, Any]) -> None:
        """Makes a checkpoint of a run that ends early. If that fails, the one before stays."""
        try:
            saver.save()
        except CannotWrite as problem:
            self._warn(problem, pool, info)

    def _conclude(self, writer: Writer, pool: Pool, info: dict[str, Any]) -> None:
        """Writes the last rows and run.json."""
        try:
            try:
                writer.close()
            finally:
                info["rows"] = writer.written
            write_json(self.folder, info)
        except CannotWrite as problem:
            finished = info["status"] == "finished"
            if finished:
                info |= {"status": "failed", "error": str(problem)}
            else:
                self._warn(problem, pool, info)
            with suppress(CannotWrite):  # it is small and may find room; if not, readers see that the process is gone
                write_json(self.folder, info)
            if finished:
                raise self._unwritten(problem) from None

    def _warn(self, problem: CannotWrite, pool: Pool, info: dict[str, Any]) -> None:
        """Warns that a run that ends early could not write its end. A run that fails needs no warning, because it
        raises an error."""
        if info["error"] is None:
            info["error"] = str(problem)
            pool.warnings.append(f"{self.run}: {self._unwritten(problem).cause}")

    def _begin(self, info: dict[str, Any], checkpoint: Checkpoint | None) -> Writer:
        """Writes run.json, and opens the tables after the rows that the checkpoint includes."""
        try:
            write_json(self.folder, info)
            keep = None if not self.goes_on else checkpoint.rows if checkpoint else {}  # without one, it starts again
            return Writer(self.folder, self.run, keep=keep, heard=self.tables, before_writing=self._require_mine)
        except CannotWrite as problem:
            raise self._unwritten(problem) from None

    def _require_mine(self) -> None:
        """Raises TakenOver if another process writes this run by now, as run.json says, or if this is a copy of it."""
        if os.getpid() != self.process:
            text = "this process is a copy of the one that carries the run out, made by `os.fork`, so it ends here"
            raise TakenOver("writing", f"{text}; let a copy end with `os._exit`", "")
        with suppress(NotARun):
            if (other := read_info(self.folder).get("holder")) != self.holder:
                who = f"process {other.get('pid')} on {other.get('host')}" if other else "another process"
                raise TakenOver("writing", f"{who} has taken the run over, so this one ends here", "")

    def _unwritten(self, problem: CannotWrite) -> JobFailed:
        return JobFailed("writing", f"{problem}; what was written before is readable, and {self.cure}", "")

    def _check(self, pool: Pool, info: dict[str, Any], described: Described) -> None:
        """Notes what the data were taken for, and where the run does not do exactly what the scenario asks for.

        Raises CannotWrite if there is no room for the models that the run will leave.
        """
        several = self.scenario.run.save_clients or not self.scenario.has_server
        require_space(self.folder, 4 * described.parameters * (len(described.samples) if several else 1))
        info["data"] = list(described.meaning)
        pool.warnings += [f"{self.run}: {note}" for note in described.notes]
        info["notes"] = list(dict.fromkeys([*info["notes"], *described.notes]))

    def _before(self) -> dict[str, Any]:
        """Returns the content of run.json before the run goes on; {} for a new run, and for a new fork."""
        path = self.folder / "run.json"
        before: dict[str, Any] = json.loads(path.read_text()) if self.goes_on and path.exists() else {}
        return before

    def _info(self, checkpoint: Checkpoint | None, before: dict[str, Any]) -> dict[str, Any]:
        """Returns the content of run.json at the start, or when the run goes on. before: its content before that."""
        status = "running" if self.until is None else "forking"
        info = run_info(self.scenario, self.run, status) | self.facts | {"holder": self.holder}
        if self.goes_on:
            started_at = before.get("started_at", info["started_at"])
            info = {"forked_from": before.get("forked_from"), **info, "started_at": started_at}
            version, round = (checkpoint.version, checkpoint.round) if checkpoint else (0, 0)
            resumed = {"resumed_at": now(), "version": version, "round": round}
            forks = not self.facts.keys().isdisjoint(("forking", "forked_from"))
            again = [] if forks else [resumed]  # the first run of a new fork is no resumption
            info["resumed"] = [*before.get("resumed", []), *again]
            info |= _went_on(before, info, version) if checkpoint else {}
        if not checkpoint and (earlier := before or self.past):
            told = "did the past of the other run again" if self.past else "began again"
            info["notes"] = [*info["notes"], *code_changes(earlier, info).told(told)]
        return info

    def _finish(self, simulation: Simulation[Any, Any], writer: Writer) -> dict[str, Any]:
        """Does what is left after the loop, and returns what run.json says of a finished run."""
        final = simulation.finish()
        self._require_mine()
        described = simulation.described
        save(self.folder, final, described.entries)
        found = digest(final.model, writer.digest()) | digests(final)
        return {"status": "finished", **_of_model(described), "digest": found}

    def _leave(self, simulation: Simulation[Any, Any], pool: Pool, info: dict[str, Any]) -> None:
        """Writes the last good models of a run that ends early.

        Not of one that failed, which may have lost what it needs, and often goes on at once.
        """
        if info["status"] == "interrupted":
            pool.spare(LEAVE_S)
        if left := simulation.left():
            final, made = left
            self._require_mine()
            save(self.folder, final, simulation.described.entries)
            info |= {**_of_model(simulation.described), "left": made | digests(final)}

    def _check_workers(self, pool: Pool, info: dict[str, Any], before: dict[str, Any]) -> None:
        """Updates run.json's list of workers and their machines, if workers have come or gone.

        Warns if the machines differ so that they may give different bits.
        before: what run.json said before the run went on; {} for a new run. Raises JobFailed if a worker does not have
        the instruction set that the scenario pins.
        """
        if (workers := _workers(pool, before)) == info.get("workers"):
            return
        known, found = info.get("machines"), kinds_of(pool.machines)
        info |= {"workers": workers, "machines": found}
        self._require_mine()
        write_json(self.folder, info)
        pinned = self.scenario.resources.cpu_capability
        for worker, machine in pool.machines.items():
            if pinned is not None and (machine.capability or "").lower() != pinned:
                text = f"resources.cpu_capability must be one that the CPU has, got {pinned}, and torch uses "
                raise JobFailed(worker, text + f"{machine.capability}; take a lower one", "")
        if not (changed := differences(known or found, found)):
            return
        if different := differences(found, found):
            what = ", ".join(different)
            text = f"workers differ in what last bits depend on ({what}), so another run may give others"
        else:
            text = f"goes on with what may give other last bits ({', '.join(changed)})"
            info["notes"] = list(dict.fromkeys([*info["notes"], text]))
        pool.warnings.append(f"{self.run}: {text}; see resources.cpu_capability")

    def settle(self, status: str, error: str | None = None, early: str | None = None) -> str:
        """Corrects run.json after the run, if the process that did the run could not write how it ended: because it
        died, or because the caller stopped the run, for a reason that only the caller knows.

        If the run had reached its end by then, run.json stays as it is. Returns the status.
        """
        path = self.folder / "run.json"
        info = json.loads(path.read_text()) if path.exists() else self._info(None, {})
        holder = info.get("holder")
        if holder != self.holder and state(holder) != "gone":  # another process goes on with the run
            return str(info["status"])
        if info["status"] in ("running", "forking") or (info["status"], status) == ("interrupted", "stopped"):
            error = error or info.get("error")
            info |= {"status": status, "error": error, "ended_early": early, "finished_at": now()}
            info["ended_by"] = Status(status).ended_by
            with suppress(CannotWrite):  # a reader then sees that the process is gone
                write_json(self.folder, info)
        return str(info["status"])


@contextmanager
def _if_possible() -> Iterator[None]:
    """Does the block as far as it goes: what ended the run, such as a lost cluster or a full disk, may stop it, too."""
    try:
        yield
    except TakenOver:
        raise
    except (Exception, KeyboardInterrupt):
        pass


def _went_on(before: dict[str, Any], info: dict[str, Any], version: int) -> dict[str, Any]:
    """Returns the part of run.json about the dependencies of a resumed run, with each change of them."""
    changed = code_changes(before, info)
    told = changed.told(f"went on from version {version}")
    notes = dict.fromkeys([*(before.get("notes") or []), *info["notes"], *told])
    mixed = [*(before.get("depends_on") or {}).get("mixed", []), *(f"it {text}" for text in told if changed.of_bits)]
    went_on = {"depends_on": {**info["depends_on"], "mixed": mixed}, "notes": list(notes)}
    return went_on | {"machines": before["machines"]} if before.get("machines") else went_on


def _asks_to_end(error: BaseException) -> bool:
    """Whether an exception ends the run from outside: Ctrl-C, or GeneratorExit where the caller stops iterating."""
    closed = isinstance(error, GeneratorExit) and error.__traceback__ is not None and not error.__traceback__.tb_next
    return closed or isinstance(error, KeyboardInterrupt)


def _of_model(described: Described) -> dict[str, Any]:
    """Returns what run.json says of the model, with which `Result` builds it anew."""
    shape = as_lists(described.shape)
    return {"parameters": described.parameters, "input_shape": shape, "classes": described.classes}


def _workers(pool: Pool, before: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns run.json's list of workers: first those from before the run was resumed."""
    return [*before.get("workers", []), *workers_of(pool.lives)]
