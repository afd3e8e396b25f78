"""The base of algorithms whose server trains on its own samples."""

from typing import Annotated, Any

from pydantic import Field

from raysim.algorithms.central import Central
from raysim.algorithms.signatures import Model, Problem, Problems, Setting, Task
from raysim.local import Local
from raysim.local.optimizers import OPTIMIZERS, Adam, Optimizer
from raysim.parts.part import OneOf, Positive, Samples, Unit


class Hybrid(Central):
    """An algorithm whose server also trains, with its own settings."""

    server_optimizer: Annotated[Optimizer, OneOf(OPTIMIZERS)] = Adam()
    """The optimiser of the server's training. Each step starts a fresh one."""
    server_lr: Positive = 1e-3
    """Learning rate of the server's training."""
    server_epochs: Annotated[int, Field(ge=0), Unit("epochs")] = 10
    """Passes through the server's samples in each step. 0: no training."""
    server_batch_size: Samples | None = 32
    """Samples in a mini-batch of the server's training. null: all samples at once."""

    def problems(self, scenario: Setting) -> Problems:
        return needs_server_data(scenario)

    def fit(self, task: Task, start: Model, **options: Any) -> Model:
        """Returns the model after the server's training from `start`. options: further arguments of `task.train`."""
        if self.server_epochs == 0:
            return start
        settings = Local(  # all of them, so that nothing is taken from `local`
            optimizer=self.server_optimizer,
            lr=self.server_lr,
            epochs=self.server_epochs,
            batch_size=self.server_batch_size,
        )
        return task.train(start, **options, **dict(settings)).model


def needs_server_data(scenario: Setting, *, in_domain: bool = False) -> Problems:
    """Yields a problem if the server has no samples. in_domain: also if they are not like the clients' samples."""
    name, kind = scenario.algorithm.name, scenario.server_data.name
    if kind == "none":
        example = "`server_data: {name: in_domain, samples: 100}`"
        text = f"must not be none, because the server of {name} needs server-side samples; for example {example}"
        yield Problem("server_data", text)
    elif in_domain and not scenario.server_data.in_domain:
        text = f"must be in_domain, because the server of {name} learns from their labels, got {kind}; take in_domain"
        yield Problem("server_data", text)
