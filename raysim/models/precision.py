"""The types of a module's numbers: what is trained is float32, and a frozen base may have half of that."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

HALF = (torch.bfloat16, torch.float16)


def settled(module: nn.Module) -> nn.Module:
    """Makes a module float32, in place, but for frozen parameters in bfloat16 or float16, and buffers beside them.

    If there are any, each layer then takes its inputs in the type of its own parameters, and outputs are float32.
    """
    if not any(parameter.dtype in HALF for parameter in module.parameters() if not parameter.requires_grad):
        return module.float()
    for parameter in module.parameters():
        if parameter.is_floating_point() and (parameter.requires_grad or parameter.dtype not in HALF):
            parameter.data = parameter.data.float()
    for layer in module.modules():
        held = (*layer.parameters(recurse=False), *layer.buffers(recurse=False))
        own = next((tensor.dtype for tensor in held if tensor.is_floating_point()), None)
        if own is not None and layer is not module:
            layer.register_forward_pre_hook(To(own), with_kwargs=True)
    module.register_forward_hook(Float32())
    return module


@dataclass(frozen=True)
class To:
    """A forward pre-hook that gives a layer its inputs of floats in one type."""

    kind: torch.dtype

    def __call__(self, module: nn.Module, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return tuple(map(self._cast, args)), {name: self._cast(value) for name, value in kwargs.items()}

    def _cast(self, value: Any) -> Any:
        return value.to(self.kind) if isinstance(value, Tensor) and value.is_floating_point() else value


@dataclass(frozen=True)
class Float32:
    """A forward hook that gives what a module returns as float32."""

    def __call__(self, module: nn.Module, args: Any, output: Any) -> Any:
        return output.float() if isinstance(output, Tensor) and output.is_floating_point() else output
