"""Runs in Weights & Biases."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from raysim.observers.observer import RunBegin, RunEnd
from raysim.observers.trackers.points import RoundPoint
from raysim.observers.trackers.tracker import Tracker, identity, outcome, parameters, title


class Wandb(Tracker):
    """Sends runs to Weights & Biases: the scenario as config, a sweep as a group, the final model as an artifact.

    Charts are over `round`, and any can be shown over `virtual_time`. It obeys wandb's own settings, such as
    WANDB_API_KEY, and WANDB_MODE=offline for files that `wandb sync` sends later.
    """

    library: ClassVar[str | None] = "wandb"
    package: ClassVar[str] = "raysim[wandb]"

    name: str = "wandb"
    project: str = "raysim"
    """The project that runs go to."""
    entity: str | None = None
    """The user or team that the project belongs to. null: as wandb's own settings say."""
    _run: Any = None

    def open(self, run: RunBegin) -> int | None:
        import wandb

        # Several runs of a sweep are open in one process, whose output and machine are none of them.
        settings = wandb.Settings(
            console="off", silent=True, reinit="create_new", x_disable_stats=True, save_code=False
        )
        self._run = wandb.init(
            project=self.project,
            entity=self.entity,
            id=identity(run),
            name=title(run),
            group=run.sweep,
            config=parameters(run),
            resume="allow",
            settings=settings,
        )
        self._run.define_metric("*", step_metric="round")
        return int(self._run.step) if self._run.resumed else None

    def log(self, point: RoundPoint) -> None:
        row = {"round": point.round, "virtual_time": point.virtual_time, **point.metrics}
        self._run.log(row, step=point.round)

    def close(self, end: RunEnd, files: Sequence[Path]) -> None:
        import wandb

        self._run.summary.update(outcome(end))
        if files:
            model = wandb.Artifact(f"model-{self._run.id}", type="model")
            for file in files:
                model.add_file(str(file))
            self._run.log_artifact(model)
        self._run.finish(exit_code=0 if end.status in ("finished", "stopped") else 1)
