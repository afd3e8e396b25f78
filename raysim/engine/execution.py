"""One run in its folder: what the scheduler actor, or this process, carries out."""

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
from raysim.scenario import Scenario
from results import Writer, write_json


@dataclass(frozen=True)
class Execution:
    """Calling it with a pool does the run, yields Progress, and leaves tables, model and run.json in the folder."""

    scenario: Scenario
    folder: Path

    @property
    def run(self) -> str:
        """The run's id."""
        return self.folder.name

    def __call__(self, pool: Pool) -> Iterator[Progress]:
        """Raises JobFailed where a job does; the tables stay readable and run.json says how it ended."""
        began = time.perf_counter()
        info = run_info(self.scenario, self.run, "running")
        write_json(self.folder, info)
        writer = Writer(self.folder, self.run)
        family = family_of(self.scenario)
        recorder = family.recorder(writer)
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
        except JobFailed as failed:
            info |= {"status": "failed", "error": f"{failed}\n{failed.traceback}".strip()}
            raise
        except Exception:  # of the timeline, such as a script of picks that cannot be followed
            info |= {"status": "failed", "error": traceback.format_exc()}
            raise
        except BaseException:  # such as Ctrl-C, or that nobody watches any more
            info["status"] = "interrupted"
            raise
        finally:
            writer.close()
            info |= {"finished_at": now(), "totals": dict(recorder.totals), "ended_early": recorder.early}
            info["seconds"] = {"total": time.perf_counter() - began, "loop": loop_s}
            write_json(self.folder, info)

    def settle(self, status: str, error: str | None = None, early: str | None = None) -> None:
        """Corrects run.json where whoever carried out the run could not: it ended without a word, or cannot know why it
        was stopped."""
        path = self.folder / "run.json"
        info = json.loads(path.read_text()) if path.exists() else run_info(self.scenario, self.run, "running")
        if info["status"] == "running" or status == "stopped":
            ended = {"status": status, "error": error, "ended_early": early, "finished_at": now()}
            write_json(self.folder, info | ended)
