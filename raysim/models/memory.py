"""What must hold of a module's tensors, which become parts of flat vectors: what is trained shares its memory with
nothing else, and a forward pass makes none and leaves as it is what is not averaged, for it would be lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from raysim.parts.errors import BadValue


def is_expanded(tensor: Tensor) -> bool:
    """Whether several elements of a tensor are one number in memory, so that it cannot be changed in place."""
    dense = tensor.layout == torch.strided
    return dense and any(step == 0 and n > 1 for n, step in zip(tensor.shape, tensor.stride(), strict=True))


def separate_expanded(module: nn.Module) -> None:
    """Gives each element of expanded buffers memory of its own."""
    made: dict[int, Tensor] = {}
    for layer in module.modules():
        for name, buffer in layer._buffers.items():
            if buffer is not None and is_expanded(buffer):
                layer._buffers[name] = made.setdefault(id(buffer), buffer.contiguous())


def require_own_memory(module: nn.Module) -> None:
    """Raises BadValue if a parameter that is trained shares its memory with another tensor of the module. Tied weights
    do not: there, one and the same parameter has several names."""
    end, holder, trained = 0, "", False  # of the place in memory where the tensors so far end
    for start, stop, name, is_trained in sorted(_places(module)):
        if start < end and (trained or is_trained):
            text = f"must have trained parameters that share no memory, got {holder} and {name}, maybe through `.data`"
            cure = f"make {name} the same Parameter, as in `self.b.weight = self.a.weight`, or a clone()"
            raise BadValue(f"{text}; {cure}")
        if stop > end:
            end, holder, trained = stop, name, is_trained


def _places(module: nn.Module) -> Iterator[tuple[int, int, str, bool]]:
    """Yields where each tensor of a module begins and ends in memory, its name, and whether it is trained."""
    for name, tensor in _tensors(module):
        if tensor.layout == torch.strided and tensor.numel() and not tensor.is_meta:
            start, steps = tensor.data_ptr(), zip(tensor.shape, tensor.stride(), strict=True)
            last = sum((n - 1) * step for n, step in steps)
            trained = isinstance(tensor, nn.Parameter) and tensor.requires_grad
            yield start, start + (last + 1) * tensor.element_size(), name, trained


def _tensors(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yields parameters, buffers and the tensors among attributes, each object once, with names."""
    seen = set()
    for path, layer in module.named_modules():
        held = {**layer._parameters, **layer._buffers, **vars(layer)}
        for name, tensor in held.items():
            # Spectral norm of the older kind leaves the weight's memory under its name, and never reads it.
            old = f"{name}_orig" in layer._parameters
            if isinstance(tensor, Tensor) and id(tensor) not in seen and not old:
                seen.add(id(tensor))
                yield f"{path}.{name}".lstrip("."), tensor


class Held(NamedTuple):
    """What a module must not change in a forward pass."""

    frozen: dict[str, float]  # by name, the sum of a frozen parameter; of a trained one 0
    shapes: dict[str, tuple[int, ...]]  # of dense buffers of floats that a state dict holds
    constants: dict[str, Tensor]  # those that are not finite

    @classmethod
    def by(cls, module: nn.Module) -> Held:
        frozen = {name: 0.0 if p.requires_grad else _sum(p) for name, p in module.named_parameters()}
        kept = module.state_dict().keys()
        floats = {n: b for n, b in module.named_buffers() if b.is_floating_point() and b.layout == torch.strided}
        constants = {name: buffer.clone() for name, buffer in floats.items() if not buffer.isfinite().all()}
        return cls(frozen, {name: tuple(buffer.shape) for name, buffer in floats.items() if name in kept}, constants)

    def require_same(self, after: Held) -> None:
        """Raises BadValue if a forward pass made parameters or buffers, or changed what is not averaged."""
        if made := sorted(after.frozen.keys() - self.frozen.keys()):
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
            if now is None or not torch.equal(now.nan_to_num(), value.nan_to_num()):
                text = "is taken for a constant, as it is not finite at first, but training changes it"
                raise BadValue(f"buffer {name!r} {text}; give it finite values to start from")

    def require_frozen(self, after: Held) -> None:
        """Raises BadValue if a frozen parameter is not what it was, once the module has its first values again."""
        if changed := [name for name, value in self.frozen.items() if after.frozen[name] != value]:
            text = f"must leave its frozen parameters as they are, but its forward pass changes {changed[0]!r}"
            raise BadValue(f"{text}; make a buffer of it, with register_buffer, which is averaged over clients")


def _sum(frozen: Tensor) -> float:
    return float(frozen.detach().sum(dtype=torch.float64)) if frozen.is_floating_point() else 0.0
