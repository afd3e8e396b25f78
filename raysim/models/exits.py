"""Modules with exits: a whole one has them at the ends of its first parts, and a shallow one ends there."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from raysim.models.layout import Layout
from raysim.models.slices import Slices
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
