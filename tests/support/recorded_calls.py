"""A stand-in for CUDA graphs on a CPU: records the operations of a function, and runs them again on the same tensors.

As in a graph, no line of the function runs again, so a number that was read from Python stays what it was, and a tensor
is where it was. Reading a number of a tensor is refused, which on a GPU means waiting for it.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

ATEN = torch.ops.aten
WAITING = {ATEN._local_scalar_dense.default, ATEN.nonzero.default, ATEN.equal.default, ATEN.is_nonzero.default}


class Recorder(TorchDispatchMode):
    """Keeps all calls of operations within the block, and refuses those that wait for a GPU."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: list[tuple[Any, Any, Any, Any]] = []
        self.before: dict[int, tuple[Any, Any]] = {}  # storages, and what they held when first seen, by address
        self._made: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in WAITING or (func is ATEN.index.Tensor and any(_is_mask(one) for one in args[1])):
            raise RuntimeError(f"operation not permitted when stream is capturing: {func}")
        for tensor in _tensors((args, kwargs)):
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in self.before:
                self.before[storage.data_ptr()] = storage, storage.clone()
        made = func(*args, **(kwargs or {}))
        self.calls.append((func, args, kwargs or {}, made))
        return made


def recorded(work: Callable[[], Any]) -> tuple[Callable[[], None], Any]:
    """Captures a function, as `raysim.local.graphs.on_gpu` does: nothing is changed by that."""
    recorder, state = Recorder(), torch.default_generator.get_state()
    with recorder:
        result = work()
    for storage, before in recorder.before.values():
        storage.copy_(before)
    torch.default_generator.set_state(state)

    @torch.no_grad()
    def replay() -> None:
        for func, args, kwargs, made in recorder.calls:
            if func.is_view:
                continue
            again = func(*args, **kwargs)
            if not func._schema.is_mutable:
                for old, new in zip(_tensors(made), _tensors(again), strict=True):
                    old.copy_(new)

    return replay, result


def _is_mask(one: Any) -> bool:
    return one is not None and one.dtype == torch.bool


def _tensors(some: Any) -> list[torch.Tensor]:
    return [one for one in tree_leaves(some) if isinstance(one, torch.Tensor)]
