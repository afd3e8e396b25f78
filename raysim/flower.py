"""Clients that were written for Flower: `fit` of a `NumPyClient` trains a client, and raysim does all else.

Beutel et al., Flower: a friendly federated learning research framework, arXiv:2007.14390. Flower itself is not needed.

Differences from Flower: `evaluate` of the client is not called, because raysim evaluates the server's model. A client
counts with the samples that `data` gives it, and `fit` must return that number. Metrics that are numbers become columns
of the table `updates`. Random draws from torch's, numpy's and Python's global generators are seeded for each dispatch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from raysim.algorithms.central import Central
from raysim.algorithms.fedavg import FedAvg
from raysim.algorithms.fedbuff import FedBuff
from raysim.algorithms.signatures import Task
from raysim.parts.errors import BadValue
from raysim.parts.own_function import Arguments, ImportPath, find
from raysim.terms import Record, TorchModule


@dataclass(frozen=True)
class Context:
    """What `client_fn` gets of a Flower `Context`, and the client's task.

    node_config: `partition-id`, the client's number, and `num-partitions`. run_config: the key `run_config`. task: its
    `x` and `y` are the client's samples.
    """

    node_id: int
    node_config: dict[str, Any]
    run_config: dict[str, Any]
    task: Task
    state: dict[str, Any] = field(default_factory=dict)  # new at each call: a client that keeps state is an algorithm


class NumPyClients(Central):
    """An algorithm whose clients train by `fit` of Flower's clients. It comes before the algorithm of the server."""

    client_fn: ImportPath
    """The function of the app that returns a client, as module:client_fn."""
    fit_config: Arguments = {}  # noqa: RUF012 - a field
    """The config that `fit` gets, to which `server-round`, the server's version, is added."""
    run_config: Arguments = {}  # noqa: RUF012 - a field
    """The run config of the context that `client_fn` gets."""

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        trained = task.train_by(task.received, partial(self._fit, task))
        return trained.send(delta=trained.w - message["w"]), state

    def _fit(self, task: Task, module: TorchModule) -> None:
        """Gives the client the values of a module, in the order of `state_dict`, and the module those it returns."""
        import torch

        place = {"partition-id": task.client, "num-partitions": task.population.clients}
        made = self._making(Context(task.client, place, dict(self.run_config), task))
        client = getattr(made, "numpy_client", made)  # what `to_client` has wrapped
        values = module.state_dict()
        config = {**self.fit_config, "server-round": task.moment.version}
        returned, samples, metrics = client.fit([value.cpu().numpy().copy() for value in values.values()], config)
        where = f"{self.client_fn}: `fit` of client {task.client}"
        if samples != task.samples:
            text = f"must return how many samples `data` gives the client, {task.samples}, got {samples}"
            raise BadValue(f"{where} {text}; let it train on task.x and task.y of the context, or divide `data` alike")
        shapes = [tuple(value.shape) for value in values.values()]
        if (got := [array.shape for array in returned]) != shapes:
            raise BadValue(f"{where} must return arrays of the shapes that it gets, {shapes}, got {got}")
        module.load_state_dict(dict(zip(values, map(torch.as_tensor, returned), strict=True)))
        task.log(**{name: value for name, value in metrics.items() if isinstance(value, int | float)})

    @property
    def _making(self) -> Callable[[Context], Any]:
        return find(self.client_fn)


class FlowerFedAvg(NumPyClients, FedAvg):
    """FedAvg of clients that were written for Flower."""

    name: str = "raysim.flower:FlowerFedAvg"


class FlowerFedBuff(NumPyClients, FedBuff):
    """FedBuff of clients that were written for Flower: they train asynchronously, in virtual time."""

    name: str = "raysim.flower:FlowerFedBuff"
