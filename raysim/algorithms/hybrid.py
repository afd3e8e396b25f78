"""What algorithms share whose server has samples of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from raysim.algorithms.central import Central
from raysim.errors import Problem
from raysim.local import Local
from raysim.part import Count, Positive

if TYPE_CHECKING:
    from raysim.local.model import Model
    from raysim.local.task import Task
    from raysim.scenario import Scenario


class Hybrid(Central):
    """An algorithm whose server trains too, in settings of its own."""

    server_optimizer: Literal["adam", "sgd"] = "adam"
    """Of the server's training; a fresh one in each step."""
    server_lr: Positive = 1e-3
    """Its learning rate."""
    server_epochs: Annotated[int, Field(ge=0)] = 10
    """Passes through the server's samples in each step. 0: no training."""
    server_batch_size: Count | None = 32
    """null: all samples at once, in order."""

    def problems(self, scenario: Scenario) -> Iterable[Problem]:
        return needs_server_data(scenario)

    def server_settings(self) -> dict[str, Any]:
        """What `task.train` takes for the server's training: nothing of it is as `local` says. Needs an epoch."""
        return Local(
            optimizer=self.server_optimizer,
            lr=self.server_lr,
            epochs=self.server_epochs,
            batch_size=self.server_batch_size,
        ).model_dump()

    def fit(self, task: Task, start: Model, **options: Any) -> Model:
        """The model that the server's training makes of `start`. options: more of those of `task.train`."""
        if self.server_epochs == 0:
            return start
        return task.train(start, **options, **self.server_settings()).model


def needs_server_data(scenario: Scenario, *, in_domain: bool = False) -> Iterator[Problem]:
    """A problem, unless the server has samples. in_domain: they must be like the clients', with the same labels."""
    name, kind = scenario.algorithm.name, scenario.server_data.name
    if kind == "none":
        text = f"must not be none, for the server of {name} works on samples of its own; take in_domain, for example"
        yield Problem("server_data", text)
    elif in_domain and kind != "in_domain":
        text = f"must be in_domain, for the server of {name} learns from their labels, got {kind}; take in_domain"
        yield Problem("server_data", text)
