"""An app as Flower's projects have one, and an algorithm whose clients train by a loop of plain PyTorch."""

from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from raysim.algorithms.fedavg import FedAvg


def descend(module: nn.Module, x: torch.Tensor, y: torch.Tensor) -> None:
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    optimizer.zero_grad()
    cross_entropy(module(x), y).backward()
    optimizer.step()


class Client:
    """It has the methods of a `NumPyClient`."""

    def __init__(self, context: Any) -> None:
        self.module = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
        self.x, self.y = context.task.x, context.task.y
        self.place = context.node_config["partition-id"]
        self.returns = context.run_config.get("returns", "all")

    def fit(self, parameters: list[Any], config: dict[str, Any]) -> tuple[list[Any], int, dict[str, Any]]:
        names = self.module.state_dict().keys()
        self.module.load_state_dict({name: torch.tensor(one) for name, one in zip(names, parameters, strict=True)})
        descend(self.module, self.x, self.y)
        arrays = [one.numpy() for one in self.module.state_dict().values()]
        metrics = {"place": self.place, "told": config["server-round"], "text": "left out"}
        if self.returns == "fewer arrays":
            return arrays[1:], len(self.y), metrics
        return arrays, len(self.y) - (self.returns == "fewer samples"), metrics


def client_fn(context: Any) -> Client:
    return Client(context)


class Wrapped:
    """What `to_client` returns."""

    def __init__(self, client: Client) -> None:
        self.numpy_client = client


def wrapped_fn(context: Any) -> Wrapped:
    return Wrapped(Client(context))


class Looping(FedAvg):
    """FedAvg with a custom loop. replaces: whether it puts new tensors in the place of the parameters."""

    name: str = "flower_app:Looping"
    replaces: bool = False

    def update(self, task: Any, message: Any, state: Any) -> Any:
        def loop(module: nn.Module) -> None:
            for x, y in task.mini_batches():
                descend(module, x, y)
            if self.replaces:
                for parameter in module.parameters():
                    parameter.data = parameter.data.clone()

        trained = task.train_by(task.received, loop)
        return trained.send(delta=trained.w - message["w"]), state
