"""The jobs in Flower's simulation, on Ray with one actor per process.

Beutel et al., Flower: a friendly federated learning research framework, arXiv:2007.14390.
"""

import logging
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import torch
from flower_client import app as client_app
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MessageType, MetricRecord, RecordDict
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from jobs import SEED, FashionMnist, Job, load, network, normalize, parser, report, selected
from raw_torch import count_correct

PULL_SECONDS = 0.01  # between looks for replies; 0.1 unless it is set


class FewNodes(FedAvg):
    """FedAvg with clients that it draws itself and gives to the nodes, of which there are as many as a cohort."""

    def __init__(self, job: Job) -> None:
        super().__init__(fraction_evaluate=0.0)
        self._job = job

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        cohort = np.random.default_rng((SEED, server_round)).choice(self._job.clients, self._job.cohort, replace=False)
        for node, client in zip(grid.get_node_ids(), cohort.tolist(), strict=True):
            own = ConfigRecord({**config, "server-round": server_round, "client": client})
            yield Message(RecordDict({"arrays": arrays, "config": own}), node, MessageType.TRAIN)


class Recorder:
    """Evaluates after every `evaluate_every` rounds, and records the seconds of each round and the last accuracy."""

    def __init__(self, job: Job, data: FashionMnist, threads: int) -> None:
        self._job, self._model, self._threads = job, network(job), threads
        self._images = torch.from_numpy(normalize(data.test_images)).tensor_split(threads)
        self._labels = torch.from_numpy(data.test_labels.astype(np.int64)).tensor_split(threads)
        self.laps: list[float] = []

    def __call__(self, round_: int, arrays: ArrayRecord) -> MetricRecord | None:
        """Flower calls it before the first round, with 0, and after each."""
        if round_ and round_ % self._job.evaluate_every == 0:
            self._model.load_state_dict(arrays.to_torch_state_dict())
            with ThreadPoolExecutor(self._threads) as pool:  # actors wait meanwhile, so there are cores for them
                correct = sum(pool.map(partial(count_correct, self._model), self._images, self._labels))
            self.accuracy = correct / sum(map(len, self._labels))
        now = time.perf_counter()
        if round_:
            self.laps.append(now - self._start)
        self._start = now
        return None


def check(job: Job, replies: list[RecordDict], weighted_by: str) -> MetricRecord:
    """Returns no metrics. Raises RuntimeError if a client failed, which Flower would leave out of the round."""
    if len(replies) != job.cohort:
        raise RuntimeError(f"{job.cohort} clients must have trained, but only {len(replies)} did")
    return MetricRecord()


def server_app(job: Job, root: str, processes: int, few: bool, recorder: Recorder) -> ServerApp:
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        grid.pull_interval = PULL_SECONDS
        config = ConfigRecord({"job": job.name, "root": root})
        while len(nodes := list(grid.get_node_ids())) < (job.cohort if few else job.clients):
            time.sleep(0.1)
        content = RecordDict({"config": config})
        grid.send_and_receive([Message(content, node, MessageType.QUERY) for node in nodes[:processes]])
        share = job.cohort / job.clients
        strategy = FewNodes(job) if few else FedAvg(share, fraction_evaluate=0.0, min_train_nodes=job.cohort)
        strategy.train_metrics_aggr_fn = partial(check, job)
        arrays = ArrayRecord(network(job).state_dict())
        strategy.start(grid, arrays, num_rounds=job.rounds, train_config=config, evaluate_fn=recorder)

    return app


def main() -> None:
    arguments = parser("Runs a job in Flower and prints its times as one line of JSON.")
    arguments.add_argument("--processes", type=int, default=2, help="actors")
    arguments.add_argument("--few-nodes", action="store_true", help="one for each client of a cohort, not of them all")
    options = arguments.parse_args()
    logging.getLogger("flwr").setLevel(logging.ERROR)
    job, root = selected(options), options.root.resolve()
    recorder = Recorder(job, load(root), options.processes)
    resources = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}, "init_args": {"num_cpus": options.processes}}
    server = server_app(job, str(root), options.processes, options.few_nodes, recorder)
    nodes = job.cohort if options.few_nodes else job.clients
    run_simulation(server, client_app, nodes, backend_config=resources)
    report("flower", job, options.processes, recorder.laps, recorder.accuracy, ["flwr", "ray"])


if __name__ == "__main__":
    main()
