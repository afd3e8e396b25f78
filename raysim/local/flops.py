"""Counts floating-point operations."""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry


class FlopCounter(TorchDispatchMode):
    """Counts, within the block, what torch's `FlopCounterMode` counts: matrix products, convolutions and attention.

    That one loads torch's compiler when it is used first, which takes seconds.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.total: float = 0.0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else torch would load its compiler, to keep it from compiling this class

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        packet = func._overloadpacket
        if packet not in flop_registry and func is not torch.ops.prim.device.default:
            with self:
                parts = func.decompose(*args, **kwargs)  # an operation that is made of others
            if parts is not NotImplemented:
                return parts
        result = func(*args, **kwargs)
        if packet in flop_registry:
            self.total += flop_registry[packet](*args, **kwargs, out_val=result)
        return result
