"""Clients at work in local training, and optimisers beside torch's."""

from typing import Any

import numpy as np
import torch

from raysim.algorithms import Population
from raysim.local import Local
from raysim.local.net import Net
from raysim.local.optimizers import SGD, Adagrad, Adam, AdamW, Optimizer, RMSprop
from raysim.local.samples import Samples
from raysim.local.task import Task
from raysim.models import MLP
from raysim.models.build import initialise
from raysim.parts.rng import generator

CPU = torch.device("cpu")
OURS: list[Optimizer] = [
    SGD(),
    SGD(momentum=0.9),
    SGD(momentum=0.9, nesterov=True),
    SGD(momentum=0.9, dampening=0.5),
    Adam(),
    Adam(betas=(0.5, 0.9), eps=1e-3),
    AdamW(),
    Adagrad(),
    RMSprop(),
    RMSprop(centered=True),
    RMSprop(momentum=0.9, alpha=0.9),
]


def make_task(net: Net, samples: int = 40, local: Local | None = None, key: tuple[int, int, int] = (0, 1, 2)) -> Task:
    draw = generator(0, "test")
    x = torch.from_numpy(draw.standard_normal((samples, 1, 8, 8), dtype=np.float32))
    y = torch.from_numpy(draw.integers(0, 10, samples))
    return Task(net, net.model(), Samples.of(x, y), local or Local(), Population(1, samples), key)


def mlp(personal: tuple[str, ...] = ()) -> Net:
    return Net(initialise(MLP(hidden=(16,)), (1, 8, 8), 10, 0), personal, "cross_entropy", CPU)


def theirs(ours: Optimizer, parameters: Any, **keys: Any) -> torch.optim.Optimizer:
    kind = {one.lower(): getattr(torch.optim, one) for one in ("SGD", "Adam", "AdamW", "Adagrad", "RMSprop")}
    keys |= {"fused": True} if isinstance(ours, Adam) else {}
    made: torch.optim.Optimizer = kind[ours.name](
        parameters, **keys, **ours.model_dump(exclude={"name", "keep", "initial"})
    )
    return made
