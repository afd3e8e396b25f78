"""The memory of a module's tensors. What is trained becomes part of one flat vector, so it must share its memory with
nothing else."""

from collections.abc import Iterator

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
