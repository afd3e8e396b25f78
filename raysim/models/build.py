"""Builds the module of a scenario's model, with reproducible initial values."""

from __future__ import annotations

import torch
from torch import nn

from raysim.models.part import ModelPart
from raysim.rng import torch_seed


def initialise(part: ModelPart, shape: tuple[int, ...], num_classes: int, seed: int) -> nn.Module:
    """Returns the module: float32, on the CPU, in training mode, convolutions in channels-last memory format.

    shape: the shape of one input, as in `ModelPart.build`. The same seed gives the same bits in every process, and
    torch's global generator is left as it was. Raises ValueError as the part's `build` does.
    """
    with torch.random.fork_rng(devices=[]):
        # torch.manual_seed would also seed the GPUs' generators, which are not forked.
        torch.default_generator.manual_seed(torch_seed(seed, "model"))
        module = part.build(shape, num_classes)
    return module.float().to(memory_format=torch.channels_last)
