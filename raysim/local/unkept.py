"""What a module keeps from one forward pass to the next that is not among a model's values: buffers that are integers,
booleans or not persistent, and attributes, such as a count of steps, a cache or a generator, also within containers and
objects of a user's own classes.

One process trains many clients with one module. If such a value kept what one client made of it for the next, results
would depend on the order of clients on a worker, and so on the number of workers.
"""

import random
from argparse import Namespace
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from raysim.models.layout import Layout
from raysim.models.memory import is_expanded

_OF_TORCH = vars(nn.Module()).keys()  # parameters, buffers, sub-modules, hooks and the mode, which have keepers already
# Packages whose objects keep nothing of a client: bitsandbytes moves weights into one in the first call.
_TOLD = {"torch", "builtins", "raysim", "bitsandbytes"}


class Unkept:
    """What a module holds besides the values of a model, with first values."""

    def __init__(self, module: nn.Module, layout: Layout) -> None:
        modules = list(module.modules())
        packages = {package for one in modules for package in _packages(type(one))} - _TOLD
        attributes = [vars(one) for one in modules if "raysim" not in _packages(type(one))]  # ours are told to forget
        own = [{name: value for name, value in held.items() if name not in _OF_TORCH} for held in attributes]
        self._dicts = [(held, len(held), first) for held, first in zip(attributes, own, strict=True)]
        self._dicts += [(one._buffers, len(one._buffers), dict(one._buffers)) for one in modules]
        tensors = _other_tensors(module, {entry.name for entry in layout.buffers})
        self._contents = []
        for value in _reached([value for first in own for value in first.values()], packages):
            if type(value) is Tensor and value.is_leaf and not is_expanded(value):
                tensors.append(value)
            elif keeper := _keeper(value, packages):
                read, set_to = keeper
                self._contents.append((value, set_to, read(value)))
        self._tensors = [(tensor, tensor.detach().clone()) for tensor in tensors]

    @torch.no_grad()
    def restore(self) -> None:
        """Restores the first values."""
        for held, size, first in self._dicts:
            held.update(first)
            if len(held) > size:
                for name in [name for name in held if name not in first and name not in _OF_TORCH]:
                    del held[name]
        for value, set_to, content in self._contents:
            set_to(value, content)
        for tensor, values in self._tensors:
            if tensor.shape == values.shape:
                tensor.copy_(values)
            else:
                tensor.data = values.clone()


def has_own_mode(module: nn.Module) -> bool:
    """Whether a module's class has a method `train` or `eval` of its own."""
    return type(module).train is not nn.Module.train or type(module).eval is not nn.Module.eval


def _other_tensors(module: nn.Module, averaged: set[str]) -> list[Tensor]:
    """Returns the buffers that are not averaged; and frozen parameters of layers with modes of their own, for layers
    that merge adapters into them for evaluation take them out again with other last bits."""
    buffers = [buffer for name, buffer in module.named_buffers() if name not in averaged]
    own = [layer for layer in module.modules() if has_own_mode(layer)]
    return buffers + [p for layer in own for p in layer.parameters(recurse=False) if not p.requires_grad]


def _packages(kind: type) -> set[str]:
    return {one.__module__.partition(".")[0] for one in kind.__mro__}


def _reached(values: Iterable[Any], packages: set[str]) -> Iterator[Any]:
    """Yields each value once, with those that containers and objects of these packages hold."""
    seen, left = set(), list(values)
    while left:
        value = left.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        yield value
        if isinstance(value, dict):
            left += value.values()
        elif isinstance(value, list | tuple | deque):
            left += value
        elif _is_own(value, packages):
            left += vars(value).values()


def _is_own(value: Any, packages: set[str]) -> bool:
    """Whether a value is an object of a user's own class, or one of Python's for any attributes."""
    kind = type(value)
    plain = kind in (SimpleNamespace, Namespace) or bool(_packages(kind) & packages)
    return plain and hasattr(value, "__dict__") and not isinstance(value, type | nn.Module | Tensor)


def _keeper(value: Any, packages: set[str]) -> tuple[Callable[[Any], Any], Callable[[Any, Any], Any]] | None:
    """Returns how to read what a value holds that can change in place, and how to make it hold that again."""
    if type(value) in _CHANGEABLE and not (isinstance(value, np.ndarray) and not value.flags.writeable):
        return _CHANGEABLE[type(value)]
    return _ATTRIBUTES if _is_own(value, packages) else None


def _refill(value: Any, content: Any) -> None:
    value.clear()
    value.update(content)


def _set_all(value: Any, content: Any) -> None:
    value.clear()
    value.extend(content)


_ATTRIBUTES = (lambda value: dict(vars(value)), lambda value, content: _refill(vars(value), content))
_CHANGEABLE: dict[type, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    **dict.fromkeys((dict, OrderedDict, defaultdict, Counter), (dict, _refill)),
    set: (set, _refill),
    **dict.fromkeys((list, deque), (list, _set_all)),
    np.ndarray: (np.copy, np.copyto),
    torch.Generator: (torch.Generator.get_state, lambda value, content: value.set_state(content)),
    np.random.Generator: (
        lambda value: value.bit_generator.state,
        lambda value, content: setattr(value.bit_generator, "state", content),
    ),
    random.Random: (random.Random.getstate, random.Random.setstate),
}
