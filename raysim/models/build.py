"""Builds the module of a scenario's model, with reproducible initial values, in the types of its numbers: what is
trained is float32, and a frozen base may have 16, 8 or 4 bits."""

import logging
import random
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from raysim.data.meaning import NamedArrays, Shape
from raysim.models.layers import required_norms
from raysim.models.layout import is_expanded
from raysim.models.names import is_under, nearest_parameter
from raysim.models.part import ModelPart
from raysim.parts.errors import BadValue
from raysim.parts.process import isolated, quiet
from raysim.parts.rng import torch_seed
from raysim.terms import Depth
from results.texts import extra

HALF = (torch.bfloat16, torch.float16)
OUTLIERS = 6.0  # inputs that are larger are multiplied in half precision (Dettmers et al., NeurIPS 2022)


def initialise(
    part: ModelPart, shape: Shape, num_classes: int, seed: int, width: float = 1.0, depth: Depth | None = None
) -> nn.Module:
    """Returns the module, with its adapters, on the CPU, in training mode, convolutions channels-last if the part says
    so. It is float32 but for what is frozen in half precision, see `in_float32`.

    shape: the shape of one input, as in `ModelPart.build`. width: as in `ModelPart.build_at`. depth: how deep it is,
    with exits; None: as it is, without any. The same seed gives the same bits in every process: the global generators
    of torch, numpy and Python are seeded, and left as they were.
    Raises ValueError as `ModelPart.build` and `Lora.adapt` do, and if that does not return a module, or one without
    parameters to train, with complex ones, or without those that are to be frozen.
    """
    if isinstance(shape, dict) and "named" not in part.takes:
        text = f"{part.name} takes one array of inputs, and the data hold {', '.join(shape)}; take a custom module"
        raise BadValue(text, "name")
    with isolated(torch=True):
        # torch.manual_seed would also seed the GPUs' generators.
        torch.default_generator.manual_seed(drawn := torch_seed(seed, "model"))
        random.seed(drawn)
        np.random.seed(drawn % 2**32)
        given: Any = (shape, num_classes)
        module = part.build(*given) if width == 1 else part.build_at(width, *given)
        if part.lora is not None and isinstance(module, nn.Module):
            part.lora.adapt(module, part.embeds_at)
        if depth is not None and isinstance(module, nn.Module):
            from raysim.models.exits import with_exits

            module = with_exits(module, depth, shape)
    if not isinstance(module, nn.Module):
        raise BadValue(f"must return a torch.nn.Module, got {type(module).__name__}", "build")
    module.train()  # in which a module may freeze parts of itself
    if part.norm == "frozen":
        for layer in required_norms(module, part.norm).values():
            layer.requires_grad_(False)
    _freeze(module, part.frozen)
    _require_parameters(module)
    _separate_expanded(module)
    module = in_float32(module)
    if isinstance(shape, dict):
        module.register_forward_pre_hook(_by_name, prepend=True, with_kwargs=True)
    return module.to(memory_format=torch.channels_last) if part.channels_last else module


def _freeze(module: nn.Module, frozen: tuple[str, ...]) -> None:
    """Freezes parameters by patterns. Raises ValueError for one that chooses none that is trained."""
    named = module.named_parameters(remove_duplicate=False)  # tied weights are chosen by any of their names
    trained = {name: parameter for name, parameter in named if parameter.requires_grad}
    for one in frozen:
        found = [parameter for name, parameter in trained.items() if is_under(name, (one,))]
        if not found:
            text = "must choose trained parameters by their names, their first components or a pattern, got"
            raise BadValue(f"{text} {one!r}; nearest are {nearest_parameter(one, trained)}", "frozen")
        for parameter in found:
            parameter.requires_grad_(False)


def _require_parameters(module: nn.Module) -> None:
    """Raises ValueError unless the module's parameters can be part of a flat float32 vector."""
    trained = [(name, parameter) for name, parameter in module.named_parameters() if parameter.requires_grad]
    if not trained:
        frozen = sum(1 for _ in module.parameters())
        raise BadValue(f"must have a parameter that is trained, got none, and {frozen} frozen ones")
    if others := [f"{name} ({p.dtype})" for name, p in trained if not p.is_floating_point()]:
        raise BadValue(f"must have real parameters, which become float32, got {', '.join(others)}")


def _separate_expanded(module: nn.Module) -> None:
    """Gives each element of expanded buffers memory of its own."""
    made: dict[int, Tensor] = {}
    for layer in module.modules():
        for name, buffer in layer._buffers.items():
            if buffer is not None and is_expanded(buffer):
                layer._buffers[name] = made.setdefault(id(buffer), buffer.contiguous())


def _by_name(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """A forward pre-hook that gives a module the arrays of `NamedArrays` inputs as keyword arguments."""
    if not args or not isinstance(args[0], NamedArrays):
        return args, kwargs
    return args[1:], {**args[0], **kwargs}


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
