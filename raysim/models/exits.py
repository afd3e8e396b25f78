"""Modules with exits: a whole one has them at the ends of its first parts, and a shallow one ends there."""

from __future__ import annotations

import math
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from raysim.data.meaning import Shape
from raysim.models.layout import Layout
from raysim.models.slices import Slices
from raysim.models.widths import PRODUCTS
from raysim.parts.errors import BadValue
from raysim.terms import Depth


class _Ended(Exception):
    """Ends the forward pass of a shallow module."""


class Exit(nn.Linear):
    """A dense layer on what leaves a part: on its mean over pixels or, unless each has a label, over tokens."""

    def __init__(self, features: int, outputs: int, *, channels_first: bool, of_each: bool) -> None:
        super().__init__(features, outputs)
        self._channels_first, self._of_each = channels_first, of_each

    def forward(self, x: Tensor) -> Tensor:
        x = x.movedim(1, -1) if self._channels_first else x
        return super().forward(x if self._of_each or x.ndim == 2 else x.flatten(1, -2).mean(1))


class Exits(nn.Module):
    """A module, `body`, with exits at the ends of its first parts. It returns the mean of their logits, or the last.

    exits: by the place of their part. starts: the first layer, or block of layers, of each part after the first one, at
    the last of which a shallow module ends. blocks: those of each part, without the last layer, which is the last exit
    of a whole module.
    """

    def __init__(
        self, body: nn.Module, exits: dict[int, Exit], starts: list[str], blocks: list[list[str]], depth: Depth
    ) -> None:
        super().__init__()
        self.body, self.blocks = body, [[f"body.{name}" for name in part] for part in blocks]
        self.exits = nn.ModuleDict({str(place): one for place, one in exits.items()})
        self._mean, self._last = depth.mean, depth.first - 1
        self._entered: dict[str, Tensor] = {}
        self._logits: dict[int, Tensor] = {}
        for place, start in enumerate(starts):
            ends = depth.first < depth.parts and place == self._last
            entering = partial(self._enter, str(place), ends)
            body.get_submodule(start).register_forward_pre_hook(entering, with_kwargs=True)

    def _enter(self, place: str, ends: bool, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if place in self.exits:
            self._entered[place] = tensor_in(args, kwargs)
        if ends:
            raise _Ended

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        self._entered.clear()
        own: dict[int, Tensor] = {}
        with suppress(_Ended):
            own[self._last] = self.body(*args, **kwargs)
        self._logits = {int(place): exit(self._entered.pop(place)) for place, exit in self.exits.items()} | own
        return torch.stack([*self._logits.values()]).mean(0) if self._mean else self._logits[self._last]

    def take_logits(self) -> dict[int, Tensor]:
        """Returns the logits of each exit in the last forward pass, by the place of its part."""
        logits, self._logits = self._logits, {}
        return logits


def tensor_in(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """Returns the first tensor among what a module is called with; an empty one if there is none."""
    return next((one for one in (*args, *kwargs.values()) if isinstance(one, Tensor)), torch.empty(0))


@torch.no_grad()
def require_first_parts(
    whole: tuple[nn.Module, Layout], part: tuple[nn.Module, Layout], slices: Slices, x: Tensor
) -> None:
    """Raises BadValue unless the exits of a shallow module give what those of the whole one do. The shallow one is
    changed. x: some inputs."""
    (deep, layout), (shallow, narrow) = whole, part
    narrow.bind(shallow, layout.flatten(deep)[slices.of(0).w.to(x.device)])
    for module in (deep, shallow):
        module.eval()(x)
    assert isinstance(deep, Exits) and isinstance(shallow, Exits)
    expected = deep.take_logits()
    for place, logits in shallow.take_logits().items():
        if not torch.allclose(logits, expected[place], rtol=1e-3, atol=1e-5):
            text = f"the exit after {shallow.blocks[place][-1]} of a shallow model must give what the server's does"
            raise BadValue(f"{text}, and does not; take a model whose layers come one after another")


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
