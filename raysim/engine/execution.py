"""One run in its folder. The scheduler actor carries it out, or this process if the run is inline."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from actors import JobFailed, Pool
from raysim.engine.families import family_of
from raysim.engine.folder import digest, now, run_info, save
from raysim.engine.loop import Loop
from raysim.engine.progress import Progress
from raysim.engine.recorder import Diverged, Recorder
from raysim.scenario import Scenario
from results import Writer, write_json


@dataclass(frozen=True)
class Execution:
    """A run that can be carried out: call it with a pool. It writes tables, models and run.json into its folder."""

    scenario: Scenario
    folder: Path

    @property
    def run(self) -> str:
        """The run's id, which is the name of its folder."""
        return self.folder.name

    def __call__(self, pool: Pool) -> Iterator[Progress]:
        """Does the run, and yields Progress on the way.

        Raises JobFailed if a job fails. The tables then stay readable, and run.json says what failed. A run that
        diverges just ends, without models: the digest is then that of its tables.
        """
        began = time.perf_counter()
        info = run_info(self.scenario, self.run, "running")
        write_json(self.folder, info)
        writer = Writer(self.folder, self.run)
        family = family_of(self.scenario)
        recorder: Recorder = family.recorder(writer)
        loop_s = None
        try:
            simulation = family.start(pool, recorder)
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
        except Diverged:
            described = simulation.described
            info |= {"status": "diverged", "parameters": described.parameters, "digest": digest({}, writer.digest())}
        except JobFailed as failed:
            info |= {"status": "failed", "error": f"{failed}\n{failed.traceback}".strip()}
            raise
        except Exception:  # raised by the timeline, such as when scripted picks cannot be followed
            info |= {"status": "failed", "error": traceback.format_exc()}
            raise
        except BaseException:  # such as Ctrl-C, or GeneratorExit when the caller stops iterating
            info["status"] = "interrupted"
            raise
        finally:
            writer.close()
            info |= {"finished_at": now(), "totals": dict(recorder.totals), "ended_early": recorder.early}
            info["diverged"] = recorder.diverged
            info["seconds"] = {"total": time.perf_counter() - began, "loop": loop_s}
            write_json(self.folder, info)

    def settle(self, status: str, error: str | None = None, early: str | None = None) -> None:
        """Corrects run.json after the run, if the process that did the run could not write how it ended.

        That is so if the process died, or if the caller stopped the run, for a reason that only the caller knows.
        """
        path = self.folder / "run.json"
        info = json.loads(path.read_text()) if path.exists() else run_info(self.scenario, self.run, "running")
        if info["status"] == "running" or status == "stopped":
            ended = {"status": status, "error": error, "ended_early": early, "finished_at": now()}
            write_json(self.folder, info | ended)
