"""The trackers that come with raysim: W&B, MLflow and TensorBoard."""

import hashlib
import threading
from pathlib import Path
from typing import Any, ClassVar

from raysim.observers.observer import RunBegin, RunEnd
from raysim.observers.tracker import RoundPoint, Tracker, identity, outcome, title
from results.keys import flatten
from results.texts import DISTRIBUTION

_MAKING = threading.Lock()  # the runs of a sweep begin in several threads, and must have one parent
_BATCH = 100  # parameters in a request to MLflow, at most
_LETTERS = 6000  # of a parameter's value, at most
_STATUS = {"finished": "FINISHED", "stopped": "FINISHED", "interrupted": "KILLED"}  # else FAILED


class Wandb(Tracker):
    """Sends runs to Weights & Biases: the scenario as config, a sweep as a group.

    Charts are over `round`, and any can be shown over `virtual_time`. It obeys wandb's own settings, such as
    WANDB_API_KEY, and WANDB_MODE=offline for files that `wandb sync` sends later.
    """

    library: ClassVar[str | None] = "wandb"
    package: ClassVar[str] = f"{DISTRIBUTION}[wandb]"

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
        about: dict[str, Any] = {
            "id": identity(run),
            "name": title(run),
            "group": run.sweep,
            "config": flatten(run.scenario),
        }
        self._run = wandb.init(project=self.project, entity=self.entity, resume="allow", settings=settings, **about)
        self._run.define_metric("*", step_metric="round")
        return int(self._run.step) if self._run.resumed else None

    def log(self, point: RoundPoint) -> None:
        row = {"round": point.round, "virtual_time": point.virtual_time, **point.metrics}
        self._run.log(row, step=point.round)

    def close(self, end: RunEnd) -> None:
        self._run.summary.update(outcome(end))
        self._run.finish(exit_code=0 if end.status in ("finished", "stopped") else 1)


class MLflow(Tracker):
    """Sends runs to MLflow: the scenario as parameters, a sweep as their parent run.

    A metric's step is the round, and its time is the virtual time, as seconds since 1970; `virtual_time` is also a
    metric, which charts can have as their horizontal axis. It obeys MLflow's own settings, such as
    MLFLOW_TRACKING_URI. A database on this machine is named as sqlite:///mlflow.db.
    """

    library: ClassVar[str | None] = "mlflow"
    package: ClassVar[str] = f"{DISTRIBUTION}[mlflow]"

    name: str = "mlflow"
    experiment: str = "raysim"
    """The experiment that runs belong to; it is made if there is none."""
    uri: str | None = None
    """The server or the database. null: as MLflow's own settings say."""
    _client: Any = None
    _run: str = ""

    def open(self, run: RunBegin) -> int | None:
        from mlflow.entities import Param
        from mlflow.tracking import MlflowClient

        self._client = MlflowClient(tracking_uri=self.uri)
        tags = {}
        with _MAKING:
            experiment = self._experiment()
            if run.sweep:
                parent = self._found_or_made(experiment, f"sweep {run.sweep}", run.sweep, {})
                self._client.set_terminated(parent)
                tags["mlflow.parentRunId"] = parent
            self._run = self._found_or_made(experiment, identity(run), title(run), tags)
        known = self._client.get_run(self._run).data.params  # they cannot be changed
        values = [Param(k, str(v)[:_LETTERS]) for k, v in flatten(run.scenario).items() if k not in known]
        for start in range(0, len(values), _BATCH):
            self._client.log_batch(self._run, params=values[start : start + _BATCH])
        self._client.update_run(self._run, status="RUNNING")
        return None  # MLflow keeps a point once, however often it is sent

    def log(self, point: RoundPoint) -> None:
        from mlflow.entities import Metric

        numbers = {**point.metrics, "virtual_time": point.virtual_time}
        time = round(1000 * point.virtual_time)
        self._client.log_batch(self._run, [Metric(name, value, time, point.round) for name, value in numbers.items()])

    def close(self, end: RunEnd) -> None:
        for key, value in outcome(end).items():
            self._client.set_tag(self._run, f"raysim.{key}", value)
        self._client.set_terminated(self._run, _STATUS.get(end.status, "FAILED"))

    def _experiment(self) -> str:
        found = self._client.get_experiment_by_name(self.experiment)
        return str(found.experiment_id if found else self._client.create_experiment(self.experiment))

    def _found_or_made(self, experiment: str, key: str, name: str, tags: dict[str, str]) -> str:
        """Returns the id of the run with a key in the experiment, which is made if there is none."""
        mark = hashlib.sha256(key.encode()).hexdigest()[:32]  # for it stands in a query, and a key may hold anything
        if found := self._client.search_runs([experiment], f"tags.`raysim.key` = '{mark}'", max_results=1):
            return str(found[0].info.run_id)
        return str(self._client.create_run(experiment, run_name=name, tags={"raysim.key": mark, **tags}).info.run_id)


class TensorBoard(Tracker):
    """Writes event files for TensorBoard.

    Each metric is there twice: over rounds and, below `virtual_time/`, over virtual time. TensorBoard's steps are whole
    numbers, so virtual time is rounded there; each event's time is the virtual time itself, as seconds since 1970. The
    scenario is on the page HParams, and how the run ended on the page Text.
    """

    library: ClassVar[str | None] = "tensorboard"
    package: ClassVar[str] = f"{DISTRIBUTION}[tensorboard]"

    name: str = "tensorboard"
    folder: str | None = None
    """Where event files go: each run's into a folder of its name, in that of its sweep. null: into the folder
    `tensorboard` of the run's own, so that `tensorboard --logdir runs` shows all of them."""
    _writer: Any = None

    def open(self, run: RunBegin) -> int | None:
        from tensorboard.plugins.hparams.summary_v2 import hparams_pb
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        own = run.folder / "tensorboard"
        place = own if self.folder is None else Path(self.folder, run.sweep or "", run.run)
        for events in place.glob("events.out.tfevents.*") if place.is_dir() else ():
            events.unlink()  # the whole run is written again
        self._writer = EventFileWriter(str(place))
        of_run = flatten(run.scenario).items()
        values = {key: value if isinstance(value, bool | int | float) else str(value) for key, value in of_run}
        self._write(hparams_pb(values, run.run, 0.0), 0, 0.0)
        return None

    def log(self, point: RoundPoint) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        for prefix, step in (("", point.round), ("virtual_time/", round(point.virtual_time))):
            values = [Summary.Value(tag=prefix + name, simple_value=value) for name, value in point.metrics.items()]
            self._write(Summary(value=values), step, point.virtual_time)
        self._writer.flush()

    def close(self, end: RunEnd) -> None:
        from tensorboard.plugins.text.summary_v2 import text_pb

        told = "  \n".join(f"**{key}** {value}" for key, value in outcome(end).items())
        self._write(text_pb("outcome", told), 0, 0.0)
        self._writer.close()

    def _write(self, summary: Any, step: int, time: float) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        self._writer.add_event(Event(wall_time=time, step=step, summary=summary))
