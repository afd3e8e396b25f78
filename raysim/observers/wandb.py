"""Runs in Weights & Biases, and in Trackio, which has the interface of its library."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from raysim.observers.observer import RunBegin, RunEnd
from raysim.observers.tracker import RoundPoint, Tracker, identity, outcome, parameters, title


class _Project(Tracker):
    """A service whose library has `init`, which returns a run with `log`, `log_artifact` and `finish`."""

    project: str = "raysim"
    """The project that runs go to."""
    _run: Any = None
    _name: str = ""

    def log(self, point: RoundPoint) -> None:
        row = {"round": point.round, "virtual_time": point.virtual_time, **point.metrics}
        self._run.log(row, step=point.round)

    def close(self, end: RunEnd, files: Sequence[Path]) -> None:
        if files:
            artifact = import_module(str(self.library)).Artifact
            model = artifact(f"model-{self._name}", type="model", metadata=outcome(end))
            for file in files:
                model.add_file(str(file))
            self._run.log_artifact(model)
        self._finish(end)

    def _finish(self, end: RunEnd) -> None:
        self._run.finish()


class Wandb(_Project):
    """Sends runs to Weights & Biases: the scenario as config, a sweep as a group, the final model as an artifact.

    Charts are over `round`, and any can be shown over `virtual_time`. It obeys wandb's own settings, such as
    WANDB_API_KEY, and WANDB_MODE=offline for files that `wandb sync` sends later.
    """

    library: ClassVar[str | None] = "wandb"
    package: ClassVar[str] = "raysim[wandb]"

    name: str = "wandb"
    entity: str | None = None
    """The user or team that the project belongs to. null: as wandb's own settings say."""

    def open(self, run: RunBegin) -> int | None:
        import wandb

        # Several runs of a sweep are open in one process, whose output and machine are none of them.
        settings = wandb.Settings(
            console="off", silent=True, reinit="create_new", x_disable_stats=True, save_code=False
        )
        self._name = identity(run)
        about: dict[str, Any] = {"id": self._name, "name": title(run), "group": run.sweep, "config": parameters(run)}
        self._run = wandb.init(project=self.project, entity=self.entity, resume="allow", settings=settings, **about)
        self._run.define_metric("*", step_metric="round")
        return int(self._run.step) if self._run.resumed else None

    def _finish(self, end: RunEnd) -> None:
        self._run.summary.update(outcome(end))
        self._run.finish(exit_code=0 if end.status in ("finished", "stopped") else 1)


class Trackio(_Project):
    """Sends runs to Trackio: the scenario as config, a sweep as a group, the final model as an artifact.

    It writes to this machine, and `trackio show` shows it. It obeys Trackio's own settings, such as TRACKIO_DIR, and
    TRACKIO_SPACE_ID for a Hugging Face Space.
    """

    library: ClassVar[str | None] = "trackio"
    package: ClassVar[str] = "trackio"

    name: str = "trackio"

    def open(self, run: RunBegin) -> int | None:
        import trackio

        self._name = identity(run)
        off = {"embed": False, "auto_log_gpu": False, "auto_log_cpu": False}
        about: dict[str, Any] = {"config": {"label": run.label, **parameters(run)}, **off}
        self._run = trackio.init(self.project, name=self._name, group=run.sweep, resume="allow", **about)
        sent = getattr(self._run, "_next_step", 0) - 1  # no public name tells it
        return sent if sent >= 0 else None
