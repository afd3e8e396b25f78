"""What would have carried out runs sooner than the Ray that a command started for them, by their own measured times."""

import sys
import time
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from raysim.runs.result import Result

_SHARE = 0.5  # of the command's time that jobs may take: where they take more, another way would change little


class JobTimes(NamedTuple):
    """When the jobs of runs were at work, in seconds."""

    jobs: float  # of all of them, one after another
    busy: float  # while at least one of a run was at work
    workers: int  # that trained clients or peers, the most in a run

    @classmethod
    def of(cls, tasks: list[pa.Table]) -> "JobTimes":
        """Measures the work of runs. tasks: the table `tasks` of each."""
        jobs = busy = 0.0
        workers = 0
        for table in tasks:
            jobs += sum(table["seconds"].to_pylist())
            until = float("-inf")
            for start, took in sorted(zip(table["started_s"].to_pylist(), table["seconds"].to_pylist(), strict=True)):
                busy += max(start + took - max(start, until), 0.0)
                until = max(until, start + took)
            names = {name for name in table["worker"].to_pylist() if name.startswith("client")}
            workers = max(workers, len(names))
        return cls(jobs, busy, workers)


class CommandClock:
    """Measures what a command takes from when it looks for Ray."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    def sooner(self, *folders: Path, processes: int | None = None) -> str | None:
        """Returns which option would have carried out runs sooner than a Ray of this process's own, and what that would
        have saved at most; None if the jobs took most of the time, or if there is no such Ray.

        processes: how many runs are carried out at a time with `--inline`; None: one run, which `--local` may carry
        out, too.
        """
        placement = sys.modules.get("actors.placement")  # not loaded without Ray
        if not (folders and placement and placement.started_here()):
            return None
        took, work = (
            time.perf_counter() - self._began,
            JobTimes.of([Result(folder).table("tasks") for folder in folders]),
        )
        option, needs = "--inline", work.jobs / (processes or 1)
        if processes is None and work.workers > 1 and work.busy < 0.9 * work.jobs:  # they were at work side by side
            option, needs = f"--local {work.workers}", work.busy
        if needs > _SHARE * took:
            return None
        saved = f"{option} would save up to {took - needs:.1f} s, with the same numbers"
        return f"jobs took {needs:.1f} of {took:.1f} s, and Ray the rest; {saved}"
