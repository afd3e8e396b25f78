"""Modules as the libraries have them that they come from, without what raysim adds to run them."""

from typing import Any

import torch
from torch import nn

from raysim.models.build import To, float32
from raysim.models.exits import Exits
from raysim.models.language_models import TransformersModel, logits
from raysim.models.part import ModelPart


def of_library(module: nn.Module, part: ModelPart) -> nn.Module:
    """Returns a module that raysim has made with its library's own forward pass and, if it has adapters, as peft's. One
    with exits, which no library has, stays as it is."""
    if isinstance(module, Exits):
        return module
    if isinstance(part, TransformersModel):
        _unhook(module, logits)
        known: Any = module
        known.config.use_cache = True  # which training has no use for
    if part.lora is None:
        return module
    from raysim.models.adapted import adapted

    return adapted(module, part)


def plain(module: nn.Module, part: ModelPart) -> nn.Module:
    """Returns a module that raysim has made in float32, with its adapters merged, for other programs to load."""
    _unhook(module, To, float32)
    found = module.float()
    if part.lora is not None:
        from raysim.models.adapted import merged

        found = merged(found, part)
    return found.to(memory_format=torch.contiguous_format)


def _unhook(module: nn.Module, *ours: Any) -> None:
    """Takes these hooks, or those of these classes, out of a module and its layers."""
    for layer in module.modules():
        for hooks in (layer._forward_hooks, layer._forward_pre_hooks):
            for key in [key for key, hook in hooks.items() if hook in ours or type(hook) in ours]:
                del hooks[key]
