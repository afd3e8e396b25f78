"""Divides modules into parts, of which shallow ones have the first, with exits at their ends."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from raysim.data.named import Shape
from raysim.models.exits import Exit, Exits, tensor_in
from raysim.models.widths import PRODUCTS
from raysim.parts.errors import BadValue
from raysim.terms import Depth


class _Trace(NamedTuple):
    """What a forward pass shows: in which order layers are entered, what enters each, and what the module returns."""

    order: dict[str, int]
    entered: dict[str, Tensor]
    out: Tensor

    def first(self, name: str) -> float:
        """Returns when a layer, or one inside of it, is entered first."""
        return min((at for one, at in self.order.items() if f"{one}.".startswith(f"{name}.")), default=math.inf)

    def begin(self, name: str) -> float:
        """Returns the same; of one that is never called, when what holds it is, which may use its parameters."""
        inside = self.first(name)
        return inside if inside < math.inf or not name else self.begin(name.rpartition(".")[0])


def with_exits(body: nn.Module, depth: Depth, shape: Shape) -> nn.Module:
    """Returns a module with exits, or the first parts of it, as deep as `depth` says. The module itself is changed.

    shape: that of one input. Raises BadValue if it has too few layers for so many parts, or no logits of samples or
    tokens.
    """
    if depth.parts == 1:
        return body
    trace = _trace(body, shape)
    blocks = sorted((name for name in _blocks(body) if trace.first(name) < math.inf), key=trace.first)[:-1]
    if len(blocks) < depth.parts:
        text = f"must have a layer, or a block of layers, before its last one for each of {depth.parts} exits"
        raise BadValue(f"{text}, got {len(blocks)}; lower algorithm.exits, or take a deeper model")
    if trace.out.ndim not in (2, 3):
        raise BadValue(f"must give logits of each sample or token for exits, got shape {tuple(trace.out.shape)}")
    parts = [part.tolist() for part in np.array_split(np.array(blocks, dtype=object), depth.parts)]
    starts = [part[0] for part in parts[1:]]
    exits = {place: _exit(body.get_submodule(start), trace.entered[start], trace) for place, start in enumerate(starts)}
    if depth.first < depth.parts:
        _end(body, starts[depth.first - 1], trace)
    kept = range(depth.first) if depth.every else (depth.first - 1,)
    exits = {place: one for place, one in exits.items() if place in kept}
    return Exits(body, exits, starts[: depth.first], parts[: depth.first], depth)


def _exit(start: nn.Module, entered: Tensor, trace: _Trace) -> Exit:
    """Returns an exit for what enters the next part."""
    channels_first = isinstance(next(filter(_is_layer, start.modules())), _ConvNd)
    features = entered.shape[1 if channels_first else -1]
    return Exit(features, trace.out.shape[-1], channels_first=channels_first, of_each=trace.out.ndim == 3)


def _blocks(module: nn.Module) -> list[str]:
    """Returns the names of a module's layers or blocks of layers: its children or, of one in which a list holds most of
    all layers, the children of that."""

    def layers(one: nn.Module) -> int:
        return sum(map(_is_layer, one.modules()))

    def has_list(one: nn.Module) -> bool:
        lists = (inner for inner in one.modules() if isinstance(inner, nn.Sequential | nn.ModuleList))
        return any(2 * layers(inner) > layers(module) for inner in lists)

    def inside(one: nn.Module, name: str) -> list[str]:
        children = ((f"{name}.{key}".lstrip("."), child) for key, child in one.named_children() if layers(child))
        return [name for path, child in children for name in (inside(child, path) if has_list(child) else [path])]

    return inside(module, "")


def _is_layer(one: nn.Module) -> bool:
    return isinstance(one, PRODUCTS) or type(one).__name__ == "Conv1D"  # of transformers


@torch.no_grad()
def _trace(module: nn.Module, shape: Shape) -> _Trace:
    """Lets a module predict a sample of zeros."""
    if isinstance(shape, dict):
        raise BadValue("must take one array of inputs for exits, got several by name; take another model")
    order: dict[str, int] = {}
    entered: dict[str, Tensor] = {}

    def enter(name: str, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        order.setdefault(name, len(order))
        entered.setdefault(name, tensor_in(args, kwargs))

    named = [*module.named_modules()]
    hooks = [one.register_forward_pre_hook(partial(enter, name), with_kwargs=True) for name, one in named]
    tokens = any(isinstance(one, nn.Embedding) for _, one in named)
    module.eval()
    try:
        out = module(torch.zeros(1, *shape, dtype=torch.int64 if tokens else torch.float32))
    finally:
        module.train()
        for hook in hooks:
            hook.remove()
    return _Trace(order, entered, out)


def _end(body: nn.Module, start: str, trace: _Trace) -> None:
    """Takes all layers out of a module that it enters from a block on. What that block itself has besides stays, for
    the module may look at it before."""
    ended = trace.order[start]
    for name, one in [*body.named_modules()]:
        for key in one._modules:
            path = f"{name}.{key}".lstrip(".")
            if trace.begin(path) >= ended and not f"{start}.".startswith(f"{path}."):
                one._modules[key] = nn.Identity()
    block = body.get_submodule(start)
    if not block._modules:
        parent, _, key = start.rpartition(".")
        body.get_submodule(parent)._modules[key] = nn.Identity()
    block._modules.clear()
    for tensors in (block._parameters, block._buffers):
        tensors.update(dict.fromkeys(tensors))
