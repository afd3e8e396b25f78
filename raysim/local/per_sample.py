"""Gradients of single samples, by torch.func."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from raysim.data.dataset import IGNORED
from raysim.data.named import NamedArrays
from raysim.local.outputs import LossFunction

# Attention and LSTMs of a CPU go through the samples one by one, which is right, only slower.
warnings.filterwarnings("ignore", message="There is a performance drop because we have not yet implemented")


def gradient_of_each(
    module: nn.Module, parameters: list[nn.Parameter], loss: LossFunction, x: Tensor, y: Tensor
) -> tuple[Tensor, list[Tensor]]:
    """Returns the loss of each sample of a batch, (n,), and its gradient for each parameter, (n, ...).

    A sample's loss is that of a batch which holds nothing else. Samples none of whose labels count are left out.
    """
    if y.ndim > 1 and not y.is_floating_point() and not bool((counts := (y != IGNORED).flatten(1).any(1)).all()):
        x, y = x[counts], y[counts]
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    values = {names[id(parameter)]: parameter.detach() for parameter in parameters}
    named = isinstance(x, NamedArrays)

    def of_one(values: dict[str, Tensor], x: Any, y: Tensor) -> Tensor:
        batch = NamedArrays({name: one[None] for name, one in x.items()}) if named else x[None]
        output = functional_call(module, values, (batch,))
        return loss(output.float(), y[None])

    each = vmap(grad_and_value(of_one), in_dims=(None, 0, 0), randomness="different")
    with torch.no_grad():  # nothing needs gradients of gradients
        gradients, losses = each(values, dict(x.items()) if isinstance(x, NamedArrays) else x, y)
    return losses, [gradients[name] for name in values]
