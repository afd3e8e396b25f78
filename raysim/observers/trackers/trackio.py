"""Runs in Trackio."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from raysim.observers.observer import RunBegin, RunEnd
from raysim.observers.trackers.points import RoundPoint
from raysim.observers.trackers.tracker import Tracker, identity, outcome, parameters


class Trackio(Tracker):
    """Sends runs to Trackio: the scenario as config, a sweep as a group, the final model as an artifact.

    It writes to this machine, and `trackio show` shows it. It obeys Trackio's own settings, such as TRACKIO_DIR, and
    TRACKIO_SPACE_ID for a Hugging Face Space.
    """

    library: ClassVar[str | None] = "trackio"
    package: ClassVar[str] = "trackio"

    name: str = "trackio"
    project: str = "raysim"
    """The project that runs go to."""
    _run: Any = None

    def open(self, run: RunBegin) -> int | None:
        import trackio

        self._run = trackio.init(
            self.project,
            name=identity(run),
            group=run.sweep,
            config={"label": run.label, **parameters(run)},
            resume="allow",
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
        )
        sent = getattr(self._run, "_next_step", 0) - 1  # no public name tells it
        return sent if sent >= 0 else None

    def log(self, point: RoundPoint) -> None:
        row = {"round": point.round, "virtual_time": point.virtual_time, **point.metrics}
        self._run.log(row, step=point.round)

    def close(self, end: RunEnd, files: Sequence[Path]) -> None:
        import trackio

        if files:
            model = trackio.Artifact(f"model-{self._run.name}", type="model", metadata=outcome(end))
            for file in files:
                model.add_file(str(file))
            self._run.log_artifact(model)
        self._run.finish()
