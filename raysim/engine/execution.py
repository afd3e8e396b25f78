"""One run in its folder. The scheduler actor carries it out, or this process if the run is inline."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from actors import JobFailed, Pool
from raysim.engine.families import family_of
from raysim.engine.folder import digest, now, run_info, save
from raysim.engine.loop import Loop
from raysim.engine.machines import differences, kinds_of
from raysim.engine.progress import Progress
from raysim.engine.recorder import Recorder
from raysim.scenario import Scenario
from raysim.workers.replies import Described
from results import CannotWrite, Writer, this_process, write_json
from results.disk import require_space


@dataclass(frozen=True)
class Execution:
    """A run that can be carried out: call it with a pool. It writes tables, models and run.json into its folder."""

    scenario: Scenario
    folder: Path
    holder: dict[str, Any] = field(default_factory=this_process)  # the process that made this; if it ends, the run does

    @property
    def run(self) -> str:
        """The run's id, which is the name of its folder."""
        return self.folder.name

    def __call__(self, pool: Pool) -> Generator[Progress, None, None]:
        """Does the run, and yields Progress on the way.

        Raises JobFailed if a job fails. The tables then stay readable, and run.json says what failed.
        """
        began = time.perf_counter()
        info = self._new_info()
        write_json(self.folder, info)
        writer = Writer(self.folder, self.run)
        family = family_of(self.scenario)
        recorder: Recorder = family.recorder(writer)
        loop_s = None
        try:
            simulation = family.start(pool, recorder)
            self._check_machines(pool, info)
            self._check_space(simulation.described)
            yield from Loop(simulation, pool, recorder.totals, self.scenario.run.rounds)
            final = simulation.finish()
            loop_s = simulation.stopwatch.seconds
            described = simulation.described
            save(self.folder, final, described.entries)
            info |= {
                "status": "finished",
                "parameters": described.parameters,
                "input_shape": list(described.shape),
                "classes": described.classes,
                "digest": digest(final.model, writer.digest()),
            }
        except JobFailed as failed:
            info |= {"status": "failed", "error": f"{failed}\n{failed.traceback}".strip()}
            raise
        except CannotWrite as problem:
            info |= {"status": "failed", "error": str(problem)}
            raise self._unwritten(problem) from None
        except (Exception, SystemExit):  # raised by the timeline, such as when scripted picks cannot be followed
            info |= {"status": "failed", "error": traceback.format_exc()}
            raise
        except BaseException:  # such as Ctrl-C, or GeneratorExit when the caller stops iterating
            info["status"] = "interrupted"
            raise
        finally:
            info["machines"] = kinds_of(pool.machines)
            info |= {"finished_at": now(), "totals": dict(recorder.totals), "ended_early": recorder.early}
            info["seconds"] = {"total": time.perf_counter() - began, "loop": loop_s}
            self._conclude(writer, info)

    def _conclude(self, writer: Writer, info: dict[str, Any]) -> None:
        """Writes the last rows and run.json."""
        try:
            writer.close()
            write_json(self.folder, info)
        except CannotWrite as problem:
            finished = info["status"] == "finished"
            info |= {"status": "failed" if finished else info["status"], "error": info["error"] or str(problem)}
            with suppress(CannotWrite):  # it is small and may find room; if not, readers see that the process is gone
                write_json(self.folder, info)
            if finished:
                raise self._unwritten(problem) from None

    def _unwritten(self, problem: CannotWrite) -> JobFailed:
        hint = f"what was written before is readable, and `raysim resume {self.folder}` goes on"
        return JobFailed("writing", f"{problem}; {hint}", "")

    def _check_space(self, described: Described) -> None:
        """Raises CannotWrite if there is no room for the models that the run will leave."""
        several = self.scenario.run.save_clients or not self.scenario.has_server
        require_space(self.folder, 4 * described.parameters * (len(described.samples) if several else 1))

    def _check_machines(self, pool: Pool, info: dict[str, Any]) -> None:
        """Writes what the workers compute with to run.json, and warns if that may give other bits on each.

        Raises JobFailed if a worker does not have the instruction set that the scenario pins.
        """
        info["machines"] = kinds_of(pool.machines)
        write_json(self.folder, info)
        pinned = self.scenario.resources.cpu_capability
        for worker, machine in pool.machines.items():
            if pinned is not None and (machine.capability or "").lower() != pinned:
                text = f"resources.cpu_capability must be one that the CPU has, got {pinned}, and torch uses "
                raise JobFailed(worker, text + f"{machine.capability}; take a lower one", "")
        if different := differences(info["machines"], info["machines"]):
            text = (
                f"workers differ in what last bits depend on ({', '.join(different)}), so another run may give others"
            )
            pool.warnings.append(f"{self.run}: {text}; see resources.cpu_capability")

    def settle(self, status: str, error: str | None = None, early: str | None = None) -> None:
        """Corrects run.json after the run, if the process that did the run could not write how it ended.

        That is so if the process died, or if the caller stopped the run, for a reason that only the caller knows.
        """
        path = self.folder / "run.json"
        info = json.loads(path.read_text()) if path.exists() else self._new_info()
        if info["status"] == "running" or status == "stopped":
            ended = {"status": status, "error": error, "ended_early": early, "finished_at": now()}
            with suppress(CannotWrite):  # a reader then sees that the process is gone
                write_json(self.folder, info | ended)

    def _new_info(self) -> dict[str, Any]:
        return run_info(self.scenario, self.run, "running") | {"holder": self.holder}
