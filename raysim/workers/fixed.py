"""What a module must leave as it is, so that no client's training depends on another one's in the same process."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from raysim.parts.errors import BadValue


class Fixed(NamedTuple):
    """What a module must not change in a forward pass, for it would be lost."""

    parameters: dict[str, float]  # by name, the sum of one that is frozen, and else 0
    shapes: dict[str, tuple[int, ...]]  # of dense buffers of floats that a state dict holds
    constants: dict[str, Tensor]  # those that are not finite

    @classmethod
    def by(cls, module: nn.Module) -> Fixed:
        sums = {name: 0.0 if p.requires_grad else _sum(p) for name, p in module.named_parameters()}
        kept = module.state_dict().keys()
        floats = {n: b for n, b in module.named_buffers() if b.is_floating_point() and b.layout == torch.strided}
        constants = {name: buffer.clone() for name, buffer in floats.items() if not buffer.isfinite().all()}
        return cls(sums, {name: tuple(buffer.shape) for name, buffer in floats.items() if name in kept}, constants)

    def require_same(self, after: Fixed) -> None:
        """Raises ValueError if a forward pass made parameters or buffers, or changed what is not averaged."""
        if made := sorted({*after.parameters} - {*self.parameters}):
            cure = "make its layer in __init__, or call the module once on zeros of shape (1, *input_shape) there"
            raise BadValue(f"must have all parameters before its first call, in which it makes {made[0]!r}; {cure}")
        for name, shape in after.shapes.items():
            if (first := self.shapes.get(name)) != shape:
                had = "none" if first is None else f"one of shape {first}"
                text = f"must have its buffers before its first call, had {had} of the name {name!r}, and got {shape}"
                cure = "register it in __init__ in its last shape, for it is averaged over clients, or with persistent="
                raise BadValue(f"{text}; {cure}False, so that it starts anew in each training")
        for name, value in self.constants.items():
            now = after.constants.get(name)
            if now is None or now.shape != value.shape or not bool(((now == value) | (now != now)).all()):
                text = "is taken for a constant, as it is not finite at first, but training changes it"
                raise BadValue(f"buffer {name!r} {text}; give it finite values to start from")

    def require_frozen(self, after: Fixed) -> None:
        """Raises ValueError if a frozen parameter is not what it was, once the module has its first values again."""
        if changed := [name for name, value in self.parameters.items() if after.parameters[name] != value]:
            text = f"must leave its frozen parameters as they are, but its forward pass changes {changed[0]!r}"
            raise BadValue(f"{text}; make a buffer of it, with register_buffer, which is averaged over clients")


def _sum(frozen: Tensor) -> float:
    return float(frozen.detach().sum(dtype=torch.float64)) if frozen.is_floating_point() else 0.0


def require_alike(first: list[Tensor], again: list[Tensor]) -> None:
    """Raises ValueError if a model that was given its first values again does not give what it gave before."""
    for before, now in zip(first, again, strict=True):
        if not torch.allclose(before, now, rtol=1e-3, atol=1e-5, equal_nan=True):
            apart = float((before - now).abs().max())
            text = f"must give the same for the same values, inputs and seed, got outputs that are {apart:.3g} apart"
            cure = "keep what changes in its buffers or attributes, which start anew with each client"
            raise BadValue(f"{text}; {cure}, and not in globals, classes or iterators")
