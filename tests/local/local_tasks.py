"""Clients at work in local training."""

import numpy as np
import torch

from raysim.algorithms import Population
from raysim.local import Local
from raysim.local.net import Net
from raysim.local.samples import Samples
from raysim.local.task import Task
from raysim.models import MLP
from raysim.models.build import initialise
from raysim.parts.rng import generator

CPU = torch.device("cpu")


def make_task(net: Net, samples: int = 40, local: Local | None = None, key: tuple[int, int, int] = (0, 1, 2)) -> Task:
    draw = generator(0, "test")
    x = torch.from_numpy(draw.standard_normal((samples, 1, 8, 8), dtype=np.float32))
    y = torch.from_numpy(draw.integers(0, 10, samples))
    return Task(net, net.model(), Samples.of(x, y), local or Local(), Population(1, samples), key)


def mlp(personal: tuple[str, ...] = ()) -> Net:
    return Net(initialise(MLP(hidden=(16,)), (1, 8, 8), 10, 0), personal, "cross_entropy", CPU)
