"""The types of a module's numbers: what is trained is float32, and a frozen base may have 16, 8 or 4 bits."""

import logging
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from raysim.parts.errors import BadValue
from raysim.parts.process import quiet
from results.texts import extra

HALF = (torch.bfloat16, torch.float16)
OUTLIERS = 6.0  # inputs that are larger are multiplied in half precision (Dettmers et al., NeurIPS 2022)


def in_float32(module: nn.Module) -> nn.Module:
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
    module.register_forward_hook(float32)
    return module


@dataclass(frozen=True)
class To:
    """A forward pre-hook that gives a layer its inputs of floats in one type."""

    kind: torch.dtype

    def __call__(self, module: nn.Module, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return tuple(map(self._cast, args)), {name: self._cast(value) for name, value in kwargs.items()}

    def _cast(self, value: Any) -> Any:
        return value.to(self.kind) if isinstance(value, Tensor) and value.is_floating_point() else value


def float32(module: nn.Module, args: Any, output: Any) -> Any:
    """A forward hook that gives what a module returns as float32."""
    return output.float() if isinstance(output, Tensor) and output.is_floating_point() else output


def quantise(module: nn.Module, kind: Literal["int8", "nf4"], kept: nn.Module | None) -> None:
    """Keeps the weights of dense layers of transformers in 8 bits, or in 4-bit NormalFloats, in place; they are frozen.

    kept: the layer that stays as it is, which is the head. Raises ValueError if bitsandbytes is not installed.
    """
    from transformers.pytorch_utils import Conv1D

    try:
        with quiet():
            import bitsandbytes as bnb
    except ImportError as error:
        text = f"must be float32 or bfloat16 without the package `bitsandbytes`, got {kind}"
        raise BadValue(f"{text}; {extra('quantised')}", "dtype") from error
    # It would tell of each product that inputs are cast.
    logging.getLogger("bitsandbytes.autograd._functions").setLevel(logging.ERROR)
    for name, layer in list(module.named_modules()):
        if layer is kept or not (type(layer) is nn.Linear or isinstance(layer, Conv1D)):
            continue
        weight = layer.weight.detach()
        weight = weight.T.contiguous() if isinstance(layer, Conv1D) else weight
        made = _layer(bnb, kind, weight)
        made.bias = layer.bias
        module.set_submodule(name, made)
    marks: Any = module
    marks.is_loaded_in_8bit, marks.is_loaded_in_4bit = kind == "int8", kind == "nf4"  # where peft looks


def _layer(bnb: Any, kind: Literal["int8", "nf4"], weight: Any) -> Any:
    """Returns a layer without bias. weight: (outputs, inputs)."""
    outputs, inputs = weight.shape
    if kind == "int8":
        eight = bnb.nn.Linear8bitLt(
            inputs, outputs, bias=False, has_fp16_weights=False, threshold=OUTLIERS, device="meta"
        )
        eight.weight = bnb.nn.Int8Params(weight, requires_grad=False, has_fp16_weights=False).to("cpu")
        return eight
    four = bnb.nn.Linear4bit(inputs, outputs, bias=False, compute_dtype=weight.dtype, quant_type="nf4", device="meta")
    four.weight = bnb.nn.Params4bit(weight, requires_grad=False, quant_type="nf4", module=four).to("cpu")
    # Some CPUs would get weights in another order as models are evaluated, through which no gradient comes back.
    four.support_avx512bf16_for_cpu = False
    return four
