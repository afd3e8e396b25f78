"""Gradients and steps of a multilayer perceptron without autograd, whose bookkeeping takes a third of a small step.

A gradient is computed by the kernels that autograd calls, on the same operands. It usually has the same bits, but BLAS
may round differently into memory that is not aligned. A step of plain SGD stores no gradient: each matrix product is
added, times the rate, to the weights, which saves two passes over them. The product is rounded together with the sum,
not first on its own, so the last bits of a step are not those of autograd.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from raysim.data.dataset import IGNORED

MEAN = 1  # torch's number for reduction="mean"

# Bound to their overloads, for looking one up takes as long as some of these kernels take for a small batch.
_nll = torch.ops.aten.nll_loss_forward.default
_nll_backward = torch.ops.aten.nll_loss_backward.default
_relu_backward = torch.ops.aten.threshold_backward.default


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
        self._one = torch.ones(())  # the gradient of the loss for itself
        self._ones = torch.ones(0)  # a row of ones, as long as the last batch: a product with it sums over the batch

    @classmethod
    def of(cls, module: nn.Module, gradients: Sequence[Tensor]) -> Chain | None:
        """Returns the chain that a module is; None if it is something else, or not on a CPU.

        gradients: for each of the module's parameters, a tensor of its shape to which its gradient will be written.
        """
        children = list(module) if type(module) is nn.Sequential else []
        if children and type(children[0]) is nn.Flatten and (children[0].start_dim, children[0].end_dim) == (1, -1):
            del children[0]
        linear = [child for child in children[::2] if type(child) is nn.Linear]
        between = [child for child in children[1::2] if type(child) is nn.ReLU]
        if not linear or len(linear) != len(between) + 1 or len(linear) + len(between) != len(children):
            return None
        plain = all(one.bias is not None and one.weight.device.type == "cpu" for one in linear)
        if not plain or len(gradients) != 2 * len(linear) or any(map(is_hooked, module.modules())):
            return None  # layers share parameters, or there are others beside them
        trios = zip(linear, gradients[::2], gradients[1::2], strict=True)
        detached = ((one.weight.detach(), one.bias.detach(), places) for one, *places in trios)
        return cls([Affine(weight, weight.t(), bias, *places) for weight, bias, places in detached])

    def takes(self, x: Tensor, y: Tensor) -> bool:
        """Whether the chain can take a batch: inputs (n, ...) with one label each."""
        # Not len(y), which torch answers in Python.
        return y.ndim == 1 and not y.is_floating_point() and x.ndim > 1 and x.numel() == y.shape[0] * self._entering

    def __call__(self, x: Tensor, y: Tensor) -> tuple[Tensor, Sequence[Tensor]]:
        """Returns a batch's loss, 0-d, and its gradient for each parameter. The next call overwrites the gradients."""
        entered, loss, back = self._forward(x, y)
        for layer, given in zip(reversed(self._layers), reversed(entered), strict=True):
            torch.mm(back.t(), given, out=layer.of_weight)
            torch.sum(back, 0, out=layer.of_bias)
            if layer is not self._layers[0]:
                back = _relu_backward(back.mm(layer.weight), given, 0)
        return loss, self._views

    def descend(self, x: Tensor, y: Tensor, w: Tensor, lr: float, extra: Tensor | None) -> Tensor:
        """Takes a step of plain SGD, and returns the batch's loss before it, 0-d.

        w: the flat vector whose views the parameters are. extra: a vector like it that is added to the gradient, or
        None.
        """
        entered, loss, back = self._forward(x, y)
        backs = [back]  # the gradient of the loss for what leaves each layer, the last layer first
        for layer, given in zip(self._layers[:0:-1], entered[:0:-1], strict=True):
            backs.append(_relu_backward(backs[-1].mm(layer.weight), given, 0))
        if extra is not None:  # before w changes, for `extra` may be w itself
            w.add_(extra, alpha=-lr)
        if self._ones.shape != y.shape:
            self._ones = torch.ones(y.shape)
        for layer, given, left in zip(self._layers, entered, reversed(backs), strict=True):
            turned = left.t()
            layer.weight.addmm_(turned, given, alpha=-lr)
            layer.bias.addmv_(turned, self._ones, alpha=-lr)  # the sum over the batch
        return loss

    def _forward(self, x: Tensor, y: Tensor) -> tuple[list[Tensor], Tensor, Tensor]:
        """Returns what enters each layer, the loss, and its gradient for what leaves the last layer."""
        entered = [x.detach().flatten(1)]  # nothing here requires a gradient
        for layer in self._layers[:-1]:
            entered.append(torch.addmm(layer.bias, entered[-1], layer.transposed).relu_())
        last = self._layers[-1]
        logarithms = torch.log_softmax(torch.addmm(last.bias, entered[-1], last.transposed), 1)
        loss, weight = _nll(logarithms, y, None, MEAN, IGNORED)
        back = _nll_backward(self._one, logarithms, y, None, MEAN, IGNORED, weight)
        return entered, loss, torch._log_softmax_backward_data(back, logarithms, 1, torch.float32)


def is_hooked(module: nn.Module) -> bool:
    """Whether a module has hooks, which do something besides its forward and backward pass."""
    hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
    return any(hooks)
