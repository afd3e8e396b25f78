"""Declares runs over that ended early. `end` is available as `raysim.end`."""

from __future__ import annotations

import json
from pathlib import Path

from raysim.parts.errors import CannotGoOn
from raysim.runs.changes import require_ended
from raysim.runs.folder import now
from raysim.runs.lock import locked
from raysim.runs.result import Result
from results import open_run, write_json
from results.location import location


def end(folder: str | Path) -> Result:
    """Declares a run over that was stopped, interrupted or killed, failed or diverged, and returns its result.

    Comparisons then count it with what it has, and sweeps and `resume=True` take it for done. It can still be resumed,
    and is then as before. folder: the run's, or its URI. Raises CannotGoOn if the run is finished, or under way.
    """
    folder = open_run(location(folder)).folder.resolve()  # raises NotARun
    with locked(folder) as lockable:
        run = open_run(folder)
        require_ended(run, lockable)
        if run.status in ("finished", "dry", "forking"):
            raise CannotGoOn(f"{folder}: must be a run that ended early, got one that is {run.status}")
        write_json(folder, {**json.loads((folder / "run.json").read_text()), "declared_over": now()})
    return Result(folder)
