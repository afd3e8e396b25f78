"""Runs in MLflow."""

import hashlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from raysim.observers.observer import RunBegin, RunEnd
from raysim.observers.tracker import RoundPoint, Tracker, identity, outcome, parameters, title

_MAKING = threading.Lock()  # the runs of a sweep begin in several threads, and must have one parent
_BATCH = 100  # parameters in a request, at most
_LETTERS = 6000  # of a parameter's value, at most
_STATUS = {"finished": "FINISHED", "stopped": "FINISHED", "interrupted": "KILLED"}  # else FAILED


class MLflow(Tracker):
    """Sends runs to MLflow: the scenario as parameters, a sweep as their parent run, the final model as an artifact.

    A metric's step is the round, and its time is the virtual time, as seconds since 1970; `virtual_time` is also a
    metric, which charts can have as their horizontal axis. It obeys MLflow's own settings, such as
    MLFLOW_TRACKING_URI. A database on this machine is named as sqlite:///mlflow.db.
    """

    library: ClassVar[str | None] = "mlflow"
    package: ClassVar[str] = "raysim[mlflow]"

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
        values = [Param(k, str(v)[:_LETTERS]) for k, v in parameters(run).items() if k not in known]
        for start in range(0, len(values), _BATCH):
            self._client.log_batch(self._run, params=values[start : start + _BATCH])
        self._client.update_run(self._run, status="RUNNING")
        return None  # MLflow keeps a point once, however often it is sent

    def log(self, point: RoundPoint) -> None:
        from mlflow.entities import Metric

        numbers = {**point.metrics, "virtual_time": point.virtual_time}
        time = round(1000 * point.virtual_time)
        self._client.log_batch(self._run, [Metric(name, value, time, point.round) for name, value in numbers.items()])

    def close(self, end: RunEnd, files: Sequence[Path]) -> None:
        for key, value in outcome(end).items():
            self._client.set_tag(self._run, f"raysim.{key}", value)
        for file in files:
            self._client.log_artifact(self._run, str(file))
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
