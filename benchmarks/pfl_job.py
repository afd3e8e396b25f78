"""The jobs in Apple's pfl-research, set up like its own benchmarks.

Granqvist et al., pfl-research: simulation framework for accelerating research in Private Federated Learning,
NeurIPS 2024, arXiv:2404.06430.
"""

import os
import time
from types import MethodType

import numpy as np
import torch
from jobs import EVALUATION_BATCH, SEED, Job, load, network, normalize, parser, report, selected, split
from pfl.aggregate.simulate import SimulatedBackend
from pfl.aggregate.weighting import WeightByDatapoints
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.central_evaluation import CentralEvaluationCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
from pfl.metrics import Metrics, StringMetricName, Weighted, get_overall_value
from pfl.model.pytorch import PyTorchModel
from torch import Tensor, nn
from torch.nn.functional import cross_entropy


class Recorder(CentralEvaluationCallback):
    """Evaluates after every `frequency` rounds, and records the seconds of each round and the last accuracy."""

    def on_train_begin(self, *, model: PyTorchModel) -> Metrics:
        metrics = super().on_train_begin(model=model)
        self.laps: list[float] = []
        self._start = time.perf_counter()
        return metrics

    def after_central_iteration(
        self, aggregate_metrics: Metrics, model: PyTorchModel, *, central_iteration: int
    ) -> tuple[bool, Metrics]:
        # pfl counts from 0, and would evaluate after rounds 11, 21 and so on
        stop, metrics = super().after_central_iteration(
            aggregate_metrics, model, central_iteration=central_iteration + 1
        )
        accuracy = StringMetricName("Central val | accuracy")
        if accuracy in metrics:
            self.accuracy = get_overall_value(metrics[accuracy])
        now = time.perf_counter()
        self.laps.append(now - self._start)
        self._start = now
        return stop, metrics


def loss(self: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return cross_entropy(self(images), labels)


@torch.no_grad()
def metrics(self: nn.Module, images: Tensor, labels: Tensor) -> dict[str, Weighted]:
    correct = (self(images).argmax(1) == labels).sum().item()
    return {"accuracy": Weighted(correct, len(labels))}


def model_of(job: Job) -> PyTorchModel:
    module = network(job)
    module.loss = MethodType(loss, module)
    module.metrics = MethodType(metrics, module)
    return PyTorchModel(
        model=module,
        local_optimizer_create=torch.optim.SGD,
        central_optimizer=torch.optim.SGD(module.parameters(), lr=1.0),  # with lr 1, it adds the mean update unchanged
    )


def datasets(job: Job, data: tuple[np.ndarray, ...]) -> tuple[FederatedDataset, Dataset]:
    """Returns the clients and the test images. data: images and labels for training, then for testing, as stored."""
    train_images, train_labels, test_images, test_labels = data
    indices = split(job)
    images = torch.from_numpy(normalize(train_images)[indices])
    labels = torch.from_numpy(train_labels.astype(np.int64)[indices])
    clients = list(zip(images, labels, strict=True))
    training = FederatedDataset.from_slices(clients, get_user_sampler("random", range(job.clients)))
    test = Dataset([torch.from_numpy(normalize(test_images)), torch.from_numpy(test_labels.astype(np.int64))])
    return training, test


def main() -> None:
    options = parser("Runs a job in pfl-research and prints its times as one line of JSON.").parse_args()
    job = selected(options)
    np.random.seed(SEED)  # pfl draws its cohorts from the global generator
    training, test = datasets(job, load(options.root))
    evaluation = NNEvalHyperParams(local_batch_size=EVALUATION_BATCH)
    recorder = Recorder(test, evaluation, frequency=job.evaluate_every)
    FederatedAveraging().run(
        algorithm_params=NNAlgorithmParams(
            central_num_iterations=job.rounds,
            evaluation_frequency=job.rounds,  # clients evaluate in the first round only; pfl cannot skip that
            train_cohort_size=job.cohort,
            val_cohort_size=None,
        ),
        backend=SimulatedBackend(training_data=training, val_data=training, postprocessors=[WeightByDatapoints()]),
        model=model_of(job),
        model_train_params=NNTrainHyperParams(
            local_learning_rate=job.lr, local_num_epochs=job.epochs, local_batch_size=job.batch_size
        ),
        model_eval_params=evaluation,
        callbacks=[recorder],
        send_metrics_to_platform=False,  # or it would print them after every round
    )
    if int(os.environ.get("RANK", 0)) == 0:
        report("pfl", job, int(os.environ.get("WORLD_SIZE", 1)), recorder.laps, recorder.accuracy, ["pfl"])


if __name__ == "__main__":
    main()
