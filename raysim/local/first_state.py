"""What a module keeps from one forward pass to the next that is not among a model's values: buffers that are integers,
booleans or not persistent, and attributes, such as a count of steps, a cache or a generator.

One process trains many clients with one module. If such a value kept what one client made of it for the next, results
would depend on the order of clients on a worker, and so on the number of workers. So each starts with a deep copy of
what the module held at first.
"""

from collections.abc import Iterator
from copy import deepcopy
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor, nn

from raysim.models.layout import Layout, is_expanded

_OF_TORCH = vars(nn.Module()).keys()  # parameters, buffers, sub-modules, hooks and the mode, which have keepers already
_SPARED = {"raysim", "bitsandbytes"}  # ours are told to forget; bitsandbytes moves weights in the first call
_OF_PACKAGES = {"torch", "transformers", "bitsandbytes"}  # whose objects keep nothing of a client
_CONSTANT = (bool, int, float, complex, str, bytes, type, FunctionType, BuiltinFunctionType, MethodType, type(None))


class FirstState:
    """What a module holds besides the values of a model, as it was at first.

    in_place: whether `restore` replaces no tensor and no generator by a copy.
    """

    def __init__(self, module: nn.Module, layout: Layout) -> None:
        layers, buffers = list(module.modules()), dict(module.named_buffers())
        # A copy of what refers to these refers to them, too: this is how `deepcopy` is told.
        self._shared = {id(one): one for one in (*layers, *module.parameters(), *buffers.values())}
        # What holds values, how many there are, and those that never change.
        self._places: list[tuple[dict[str, Any], int, dict[str, Any]]] = []
        self._first: list[dict[str, Any]] = []  # copies of the others, in each place
        memo = dict(self._shared)
        for place in _places(layers):
            held = {name: value for name, value in place.items() if name not in _OF_TORCH}
            copies = {name: copied[0] for name, value in held.items() if (copied := self._copied(value, memo))}
            constants = {name: value for name, value in held.items() if name not in copies}
            self._places.append((place, len(place), constants))
            self._first.append(copies)
        made = (one for key, one in memo.items() if key not in self._shared)
        self.in_place = not any(isinstance(one, Tensor | torch.Generator) for one in made)
        averaged = {entry.name for entry in layout.buffers}
        tensors = [buffer for name, buffer in buffers.items() if name not in averaged and not is_expanded(buffer)]
        for layer in filter(has_own_mode, layers):
            # Those that merge adapters into frozen weights for evaluation take them out again with other last bits.
            tensors += [p for p in layer.parameters(recurse=False) if not p.requires_grad]
        self._tensors = [(tensor, tensor.detach().clone()) for tensor in tensors]

    def _copied(self, value: Any, memo: dict[int, Any]) -> tuple[Any] | None:
        """Returns a copy of a value; None for what stays as it is, because it never changes or has no copies."""
        if id(value) in self._shared or _is_constant(value):
            return None
        try:
            trial = deepcopy(value, dict(self._shared))
            deepcopy(trial, dict(self._shared))  # copies of hooks' handles, for example, have none
            return (deepcopy(value, memo),)
        except Exception:  # such as locks, open files, and tensors that were computed
            return None

    def held(self) -> list[dict[str, Any]]:
        """Returns the attributes and buffers of all layers, by name."""
        return [dict(place) for place, _, _ in self._places]

    @torch.no_grad()
    def restore(self) -> None:
        """Gives the module a new copy of the first state."""
        first = deepcopy(self._first, dict(self._shared)) if any(self._first) else self._first
        for (place, size, constants), values in zip(self._places, first, strict=True):
            place.update(constants)
            place.update(values)
            if len(place) > size:
                for name in place.keys() - constants.keys() - values.keys() - _OF_TORCH:
                    del place[name]
        for tensor, value in self._tensors:
            if tensor.shape == value.shape:
                tensor.copy_(value)
            else:
                tensor.data = value.clone()


def has_own_mode(module: nn.Module) -> bool:
    """Whether a module's class has a method `train` or `eval` of its own."""
    return type(module).train is not nn.Module.train or type(module).eval is not nn.Module.eval


def _places(layers: list[nn.Module]) -> Iterator[dict[str, Any]]:
    """Yields the dictionaries that hold attributes and buffers of layers."""
    for layer in layers:
        if not {kind.__module__.partition(".")[0] for kind in type(layer).__mro__} & _SPARED:
            yield vars(layer)
        yield layer._buffers


def _is_constant(value: Any) -> bool:
    if isinstance(value, tuple | frozenset):
        return all(map(_is_constant, value))
    if isinstance(value, Tensor | torch.Generator):
        return False
    return isinstance(value, _CONSTANT) or type(value).__module__.partition(".")[0] in _OF_PACKAGES
