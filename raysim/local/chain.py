"""Gradients of a multilayer perceptron without autograd, whose bookkeeping takes a third of a small network's time.

The kernels are those that autograd calls, on the same operands, so the gradients have the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn

MEAN = 1  # torch's number for reduction="mean"
IGNORED = -100  # the label that cross-entropy ignores by default


class Affine(NamedTuple):
    """A linear layer, with the tensors that its gradients are written to."""

    weight: Tensor  # (out, in)
    transposed: Tensor  # a view of it, (in, out), for making one takes time
    bias: Tensor  # (out,)
    of_weight: Tensor
    of_bias: Tensor


class Chain:
    """Linear layers with ReLU between them, under the mean cross-entropy of labels."""

    def __init__(self, layers: list[Affine]) -> None:
        self._layers = layers
        self._entering = layers[0].weight.shape[1]
        self._views = [view for layer in layers for view in (layer.of_weight, layer.of_bias)]

    @classmethod
    def of(cls, module: nn.Module, gradients: Sequence[Tensor]) -> Chain | None:
        """Returns the chain that a module is; None if it is something else, or not on a CPU.

        gradients: for each of the module's parameters, a tensor of its shape to which its gradient will be written.
        """
        children = list(module.children()) if type(module) is nn.Sequential else []
        if children and type(children[0]) is nn.Flatten and (children[0].start_dim, children[0].end_dim) == (1, -1):
            del children[0]
        linear = [child for child in children[::2] if isinstance(child, nn.Linear) and _is_plain(child)]
        between = [child for child in children[1::2] if type(child) is nn.ReLU]
        if not linear or len(linear) != len(between) + 1 or len(linear) + len(between) != len(children):
            return None
        trios = zip(linear, gradients[::2], gradients[1::2], strict=True)
        detached = ((one.weight.detach(), one.bias.detach(), places) for one, *places in trios)
        return cls([Affine(weight, weight.t(), bias, *places) for weight, bias, places in detached])

    def takes(self, x: Tensor, y: Tensor) -> bool:
        """Whether this is a batch of the kind that it is for: inputs (n, ...) with a label each."""
        return y.ndim == 1 and not y.is_floating_point() and x.ndim > 1 and x.numel() == len(y) * self._entering

    def __call__(self, x: Tensor, y: Tensor) -> tuple[Tensor, Sequence[Tensor]]:
        """Returns a batch's loss, 0-d, and its gradient for each parameter. The next call overwrites the gradients."""
        entered = [x.detach().flatten(1)]  # what enters each layer; nothing here requires a gradient
        for layer, _ in pairwise(self._layers):
            entered.append(torch.addmm(layer.bias, entered[-1], layer.transposed).relu_())
        last = self._layers[-1]
        logarithms = torch.log_softmax(torch.addmm(last.bias, entered[-1], last.transposed), 1)
        loss, weight = torch.ops.aten.nll_loss_forward(logarithms, y, None, MEAN, IGNORED)
        back = torch.ops.aten.nll_loss_backward(torch.ones_like(loss), logarithms, y, None, MEAN, IGNORED, weight)
        back = torch.ops.aten._log_softmax_backward_data(back, logarithms, 1, torch.float32)
        for layer, given in zip(reversed(self._layers), reversed(entered), strict=True):
            torch.mm(back.t(), given, out=layer.of_weight)
            torch.sum(back, 0, out=layer.of_bias)
            if layer is not self._layers[0]:
                back = torch.ops.aten.threshold_backward(back.mm(layer.weight), given, 0)
        return loss, self._views


def _is_plain(layer: nn.Linear) -> bool:
    """Whether a linear layer has a bias, is on a CPU, and does nothing besides."""
    hooked = layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks or layer._backward_pre_hooks
    return type(layer) is nn.Linear and layer.bias is not None and layer.weight.device.type == "cpu" and not hooked
