"""Dense layers whose frozen weights are kept in 8 or 4 bits, by the library bitsandbytes."""

import logging
from typing import Any, Literal

from torch import nn

from raysim.parts.errors import BadValue

Quantised = Literal["int8", "nf4"]
OUTLIERS = 6.0  # inputs that are larger are multiplied in half precision (Dettmers et al., NeurIPS 2022)


def quantise(module: nn.Module, kind: Quantised, kept: nn.Module | None) -> None:
    """Keeps the weights of dense layers of transformers in 8 bits, or in 4-bit NormalFloats, in place; they are frozen.

    kept: the layer that stays as it is, which is the head. Raises ValueError if bitsandbytes is not installed.
    """
    from transformers.pytorch_utils import Conv1D

    try:
        import bitsandbytes as bnb
    except ImportError as error:
        text = f"must be float32 or bfloat16 without the package `bitsandbytes`, got {kind}"
        raise BadValue(f"{text}; pip install 'raysim[quantised]'", "dtype") from error
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


def _layer(bnb: Any, kind: Quantised, weight: Any) -> Any:
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
