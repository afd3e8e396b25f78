"""The jobs in FLGo: FedAvg, or FedBuff with clients that take time.

Wang et al., FLGo: a fully customizable federated learning platform, arXiv:2306.12079.
"""

import argparse
import copy
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import flgo
import numpy as np
import torch
from flgo.algorithm import fedavg, fedbuff
from flgo.experiment.logger import BasicLogger
from flgo.simulator.base import BasicSimulator
from jobs import EVALUATION_BATCH, Job, network, parser, report, selected

SIGMA = 5  # of the delays


class Recorder(BasicLogger):
    """Records the seconds of each round, and the last accuracy."""

    laps: list[float]

    def initialize(self) -> None:
        self.laps = []

    def log_once(self, *args: Any, **options: Any) -> None:
        """FLGo calls it before the first round, and after every `evaluate_every` rounds."""
        self.accuracy = self.coordinator.test()["accuracy"]
        if not self.laps:
            self._start = time.perf_counter()

    def early_stop(self) -> bool:
        """FLGo calls it at the end of each round, after the evaluation."""
        now = time.perf_counter()
        self.laps.append(now - self._start)
        self._start = now
        return False

    def save_output_as_json(self, filepath: str | None = None) -> None:
        """Saves nothing."""


class HalfNormal(BasicSimulator):
    """Each update takes |N(0, SIGMA^2)| units of virtual time; the server looks for it once a unit."""

    def update_client_responsiveness(self, client_ids: list[int]) -> None:
        drawn = np.abs(self.random_module.normal(0, SIGMA, len(client_ids)))
        self.set_variable(client_ids, "latency", drawn.tolist())


class FedBuff:
    """FLGo's FedBuff. Its server counts the updates that arrive."""

    class Server(fedbuff.Server):
        arrived = 0

        def package_handler(self, received_packages: dict[str, list[Any]]) -> bool:
            self.arrived += len(received_packages["__cid"])
            return super().package_handler(received_packages)

    class Client(fedbuff.Client):
        pass


def options(job: Job, given: argparse.Namespace) -> dict[str, Any]:
    """Returns FLGo's options, and the two that `flgo_task` reads."""
    share = job.cohort / job.clients
    return {
        "job": job.name,
        "root": str(given.root),
        "num_rounds": job.rounds,
        "num_epochs": job.epochs,
        "batch_size": job.batch_size,
        "learning_rate": job.lr,
        "proportion": share,
        "sample": "uniform",
        "aggregate": "uniform",
        "algo_para": [share, 1.0] if given.asynchronous else [],  # FedBuff's updates a step, and its server's rate
        "eval_interval": job.evaluate_every,
        "test_batch_size": EVALUATION_BATCH,
        "num_parallels": given.threads,
        "parallel_type": "t",
        "log_level": "ERROR",
        "no_log_console": True,
        "no_tqdm": True,
    }


def main() -> None:
    arguments = parser("Runs a job in FLGo and prints its times as one line of JSON.")
    arguments.add_argument("--asynchronous", action="store_true", help="FedBuff, with a cohort in flight")
    arguments.add_argument("--threads", type=int, default=1, help="that train clients, in one process")
    given = arguments.parse_args()
    job = selected(given)
    initial = network(job)
    torch.optim.SGD(initial.parameters(), lr=job.lr)  # PyTorch imports two seconds' worth when it makes the first one
    model = flgo.convert_model(lambda: copy.deepcopy(initial))  # FLGo asks for a new one for each operation on models
    sys.argv = sys.argv[:1]  # FLGo would read options from the command line
    with tempfile.TemporaryDirectory() as task:
        (Path(task) / "info").write_text(json.dumps({"benchmark": "flgo_task"}))
        (Path(task) / "data.json").write_text(json.dumps({"client_names": [str(n) for n in range(job.clients)]}))
        algorithm, world = (FedBuff, HalfNormal) if given.asynchronous else (fedavg, BasicSimulator)
        server = flgo.init(task, algorithm, options(job, given), model, Recorder, world)
        server.run()
    record = server.gv.logger
    updates = server.arrived if given.asynchronous else None
    report("flgo", job, 1, record.laps, record.accuracy, ["flgo"], updates)


if __name__ == "__main__":
    main()
