"""Builds the module of a scenario's model, with reproducible initial values."""

import random
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from raysim.data.named import NamedArrays, Shape
from raysim.models.layers import required_norms
from raysim.models.layout import is_expanded
from raysim.models.names import is_under, nearest_parameter
from raysim.models.part import ModelPart
from raysim.models.precision import in_float32
from raysim.parts.errors import BadValue
from raysim.parts.process import isolated
from raysim.parts.rng import torch_seed
from raysim.terms import Depth


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
            from raysim.models.depths import with_exits

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
