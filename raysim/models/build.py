"""From a model's part of the scenario to a module with reproducible initial values."""

from __future__ import annotations

import torch
from torch import nn

from raysim.models.part import ModelPart
from raysim.rng import torch_seed


def initialise(part: ModelPart, shape: tuple[int, ...], num_classes: int, seed: int) -> nn.Module:
    """The module, float32, on the CPU, in training mode, convolutions in channels-last memory format.

    shape: one input's, (channels, height, width) or (features,). The same seed gives the same bits in every process,
    and torch's global generator is left as it was. Raises ValueError as the part's `build` does.
    """
    with torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed: it would seed the GPUs' generators too, which are not forked.
        torch.default_generator.manual_seed(torch_seed(seed, "model"))
        module = part.build(shape, num_classes)
    return module.float().to(memory_format=torch.channels_last)
