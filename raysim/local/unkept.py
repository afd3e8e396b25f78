"""What a module keeps from one forward pass to the next that is not among a model's values: buffers that are integers,
booleans or not persistent, and attributes of a user's own classes, such as a count of steps, a cache or a generator.

One process trains many clients with one module. If such a value kept what one client made of it for the next, results
would depend on the order of clients on a worker, and so on the number of workers.
"""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from raysim.models.layout import Layout

_OF_TORCH = vars(nn.Module()).keys()  # parameters, buffers, sub-modules, hooks and the mode, which have keepers already


class Unkept:
    """The module's buffers that have no place in the layout, and its classes' own attributes, with first values."""

    def __init__(self, module: nn.Module, layout: Layout) -> None:
        held = {entry.name for entry in layout.buffers}
        owners = dict(module.named_modules())
        self._places: list[tuple[dict[str, Any], str]] = []
        self._buffers: list[Tensor] = []
        for path, buffer in module.named_buffers():
            if path not in held:
                owner, _, name = path.rpartition(".")
                self._places.append((owners[owner]._buffers, name))
                self._buffers.append(buffer)
        self._attributes = [(owner.__dict__, _own(owner)) for owner in owners.values() if _is_a_users(owner)]
        for attributes, own in self._attributes:
            tensors = {name: value for name, value in own.items() if type(value) is Tensor and value.is_leaf}
            self._places += [(attributes, name) for name in tensors]
            self._buffers += tensors.values()
        self._first = [buffer.detach().clone() for buffer in self._buffers]
        self._versions = [buffer._version for buffer in self._buffers]
        values = [value for _, own in self._attributes for value in own.values() if type(value) in _CHANGEABLE]
        self._contents = [(value, _CHANGEABLE[type(value)][0](value)) for value in values]

    @torch.no_grad()
    def restore(self) -> None:
        """Restores the first values of those that were changed or replaced."""
        for number, (buffer, (buffers, name)) in enumerate(zip(self._buffers, self._places, strict=True)):
            buffers[name] = buffer
            if buffer._version != self._versions[number]:  # torch counts changes in place
                buffer.copy_(self._first[number])
                self._versions[number] = buffer._version
        for attributes, own in self._attributes:
            for name in [name for name in attributes if name not in own and name not in _OF_TORCH]:
                del attributes[name]
            attributes.update(own)
        for value, content in self._contents:
            _CHANGEABLE[type(value)][1](value, content)


def _is_a_users(module: nn.Module) -> bool:
    """Whether a module is of a class from outside of torch and raysim, whose own classes keep nothing or are told."""
    packages = {one.__module__.partition(".")[0] for one in type(module).__mro__}
    return "raysim" not in packages and not packages <= {"torch", "builtins"}


def _own(module: nn.Module) -> dict[str, Any]:
    return {name: value for name, value in vars(module).items() if name not in _OF_TORCH}


def _refill(value: Any, content: Any) -> None:
    value.clear()
    value.update(content)


# What can change in place: how to read what it holds, and how to make it hold that again.
_CHANGEABLE: dict[type, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    dict: (dict, _refill),
    set: (set, _refill),
    list: (list, lambda value, content: value.__setitem__(slice(None), content)),
    np.ndarray: (np.copy, np.copyto),
    torch.Generator: (torch.Generator.get_state, lambda value, content: value.set_state(content)),
    np.random.Generator: (
        lambda value: value.bit_generator.state,
        lambda value, content: setattr(value.bit_generator, "state", content),
    ),
    random.Random: (random.Random.getstate, random.Random.setstate),
}
