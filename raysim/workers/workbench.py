"""What every worker has: the data, shared with the other workers of its node, and a model that fits them."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from raysim.data import Federation, Split, federate
from raysim.local.model import Model
from raysim.local.net import Net, predicted
from raysim.local.samples import Loader, Samples
from raysim.local.task import Task
from raysim.models.build import initialise
from raysim.models.equilibrium import Solves
from raysim.scenario import Scenario
from raysim.workers.protocol import Described

EVALUATION_BATCH = 250  # fixed, for bits depend on it
EVALUATING = 2**32  # above any number of dispatches: what a personal model draws is keyed by this plus the version
# What an update carries for the tables only, and their columns.
LOGGED = {
    "loss_before": "loss_before",
    "loss_after": "loss_after",
    "residual": "residual",
    "tolerance": "tolerance",
    "penalty": "penalty",
}


class Workbench:
    """Made once in each actor. Methods change nothing that a later call could see."""

    def __init__(self, scenario: Scenario, gpus: float) -> None:
        torch.set_num_threads(scenario.resources.threads)
        self.scenario = scenario
        self.device = _device(gpus)

    def attach(self, federation: Federation) -> tuple[None]:
        """The data, shared with the other workers of the node; and a model that fits it."""
        self.federation = federation
        if not hasattr(self, "net"):  # else it is the worker that loaded the data, and has a model for them
            self._build()
        return (None,)

    def _federate(self) -> Federation:
        """Loads and divides the data."""
        scenario = self.scenario
        federation = federate(scenario.data, scenario.server_data, scenario.seed, scenario.public)
        self.attach(federation)
        return federation

    def _build(self) -> None:
        federation = self.federation
        module = initialise(self.scenario.model, _input_shape(federation), federation.num_classes, self.scenario.seed)
        self.net = Net(module, self.scenario.model.personal, federation.loss, self.device)
        if self.net.layout.cut == 0:
            named = ", ".join(self.scenario.model.personal)
            raise ValueError(f"model.personal: must leave parameters to share, got all, by [{named}]; leave some out")
        self.start = self.net.model()
        self.loader = Loader(federation.mean, federation.std, self.device)
        self.server_loader = Loader(federation.server.mean, federation.server.std, self.device)
        self.population = self.scenario.population(federation.samples)

    def _describe(self, stateful: bool, state: tuple[str, ...] = ()) -> Described:
        """stateful: whether clients keep state. state: the entries of the server's."""
        federation = self.federation
        return Described(
            samples=federation.samples,
            held_out=federation.held_out.sizes,
            evaluation_rows={split: len(rows) for split, (_, rows) in self.evaluated.items()},
            partition=federation.partition_table(),
            parameters=self.net.layout.parameters,
            entries=tuple((e.name, e.shape, e.offset) for e in self.net.layout.entries),
            shape=_input_shape(federation),
            classes=federation.num_classes,
            stateful=stateful,
            state=state,
            unseen=federation.unseen[federation.held.sizes[federation.unseen] > 0],
        )

    def _work_on(self, client: int, number: int, received: Model) -> Task:
        """What the client has to work with. number: of its dispatches before."""
        samples = self._samples(self.federation.train, self.federation.train_rows(client))
        key = (self.scenario.seed, client, number)
        return Task(self.net, received, samples, self.scenario.local, self.population, key, lambda: self.public)

    def _samples(self, split: Split, rows: np.ndarray) -> Samples:
        return Samples(len(rows), lambda places: self.loader(split, rows[places]))

    @cached_property
    def public(self) -> Tensor:
        """Inputs of the samples that everybody has, (n, ...); kept, for everybody works with them."""
        public = self.federation.public
        return self.loader(public, np.arange(len(public)))[0]

    @cached_property
    def forward_flops(self) -> float:
        """Of a sample's forward pass. A backward pass takes twice the work: by inputs and by parameters."""
        from torch.utils.flop_counter import FlopCounterMode

        x, _ = self.loader(self.federation.train, np.zeros(1, dtype=np.int64))
        with FlopCounterMode(display=False) as counter, self.net.evaluating(self.start) as module:
            module(x)
        return float(counter.get_total_flops())

    @property
    def evaluated(self) -> dict[str, tuple[Split, np.ndarray]]:
        """What models are evaluated on, and which rows of it, by name."""
        federation = self.federation
        return {
            "test": (federation.test, federation.evaluation_rows),
            "train": (federation.train, federation.training_rows),
        }

    def _measure(self, predict: Any, split: Split, rows: np.ndarray) -> dict[str, float]:
        """Sums of metrics over what is predicted of the rows of a split, with its number: a label of each, or several.

        predict: from inputs to logits. Deep equilibrium layers add how their solves fared, also those since somebody
        last took note, such as in adapting the model.
        """
        loss, correct, labelled = 0.0, 0, self.federation.loss == "cross_entropy"
        for start in range(0, len(rows), EVALUATION_BATCH):
            x, y = self.loader(split, rows[start : start + EVALUATION_BATCH])
            output: Tensor = predict(x)
            loss += float(self.net.loss(output, y, reduction="sum"))
            if labelled:
                correct += int((predicted(output, y).argmax(-1) == y).sum())
        samples, solves = float(split.y[rows].size), self.net.take_solves()
        sums = {"samples": samples, "loss": loss}
        if labelled:
            sums["accuracy"] = float(correct)
        if solves.solves:  # as sums over samples, of which there may be several a solve
            sums["iterations"] = samples * solves.iterations / solves.solves
            sums["unconverged"] = samples * solves.unconverged / solves.solves
        return sums


def solver_columns(solves: Solves) -> dict[str, float | None]:
    """How deep equilibrium layers fared in an update, for the tables."""
    if not solves.solves:
        return {"solver_iterations": None, "solver_residual": None, "unconverged": None}
    return {
        "solver_iterations": solves.iterations / solves.solves,
        "solver_residual": solves.residual,
        "unconverged": solves.unconverged,
    }


def _input_shape(federation: Federation) -> tuple[int, ...]:
    """Of one input, as a module gets it: (C, H, W) of an image."""
    x = federation.train.x
    return (x.shape[3], *x.shape[1:3]) if x.dtype == np.uint8 else x.shape[1:]


def _device(share: float) -> torch.device:
    """A GPU only where one was asked for: an actor that asked for none sees all of them."""
    if share == 0:
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise RuntimeError("the scenario's resources ask for a GPU, but torch finds none here")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    if share < 1:  # Ray shares out GPUs in name only
        torch.cuda.set_per_process_memory_fraction(share)
    return torch.device("cuda")
