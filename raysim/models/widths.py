"""Narrower forms of a module: its layers with fewer units, the first ones of each."""

import re
from collections.abc import Sequence
from typing import Any

from torch import nn
from torch.nn.modules.conv import _ConvNd

from raysim.models.part import share_of
from raysim.parts.errors import BadValue

PRODUCTS = (nn.Linear, _ConvNd)
_HEADS = ("num_heads", "num_attention_heads", "n_heads", "n_head", "heads")
_HEAD_SIZES = ("head_dim", "attention_head_size")
# The layers of attention whose outputs, and whose inputs, are divided among heads.
_ENTERING = re.compile(r"qkv|to_qkv|query_key_value|c_attn|in_proj|query|key|value|(to_)?[qkv]|[qkv]_(proj|lin)")
_LEAVING = re.compile(r"out|proj|out_proj|c_proj|o_proj|out_lin|to_out")
_CURE = "take another model, or a custom module with a parameter `width`"


def source_of(size: int, outputs: Sequence[int]) -> int | None:
    """Returns how many numbers each unit of an earlier layer contributes to inputs of this size: 1 or, after images are
    flattened, the number of pixels; None if they come from no such layer. outputs: the sizes of these, in order."""
    if size in outputs:
        return 1
    return next((size // units for units in reversed(outputs) if size % units == 0), None)


def narrowed(module: nn.Module, width: float) -> nn.Module:
    """Cuts the layers of a module to a width, in place, and returns it. Its first inputs and last outputs stay.

    Raises BadValue, which names the layer, for what cannot be cut so.
    """
    if attention := [name for name, layer in module.named_modules() if in_heads(layer)]:
        raise BadValue(f"{attention[0]} is attention, whose heads are not known to be cut; {_CURE}")
    layers = [(name, one) for name, one in module.named_modules() if [*one.parameters(False), *one.buffers(False)]]
    products = [one for _, one in layers if isinstance(one, (*PRODUCTS, nn.Embedding))]
    if len(products) < 2:
        raise BadValue(f"must have hidden layers to be cut to a width, got {len(products)} layers; {_CURE}")
    outputs: list[int] = []
    for name, layer in layers:
        if isinstance(layer, PRODUCTS):
            _cut_product(name, layer, width, outputs, layer is products[-1])
        elif isinstance(layer, nn.Embedding):
            outputs.append(layer.embedding_dim)
            layer.embedding_dim = share_of(layer.embedding_dim, width)
            _keep(layer, "weight", layer.num_embeddings, layer.embedding_dim)
        else:
            _cut_units(name, layer, width)
    return module


def _cut_product(name: str, layer: Any, width: float, outputs: list[int], last: bool) -> None:
    """Cuts a dense or convolutional layer. outputs: the sizes of all earlier layers, to which that of this is added."""
    kind = ("in_features", "out_features") if isinstance(layer, nn.Linear) else ("in_channels", "out_channels")
    before, after = (int(getattr(layer, key)) for key in kind)
    pixels = source_of(before, outputs)  # None: what enters is no layer's, but the input
    fewer = before if pixels is None else pixels * share_of(before // pixels, width)
    left = after if last else share_of(after, width)
    groups = getattr(layer, "groups", 1)
    if groups > 1 and groups != before:
        raise BadValue(f"{name} is a convolution in {groups} groups, whose channels cannot be cut; {_CURE}")
    if groups > 1:
        layer.groups = fewer
    _keep(layer, "weight", left, fewer // layer.groups if groups > 1 else fewer)
    if layer.bias is not None:
        _keep(layer, "bias", left)
    setattr(layer, kind[0], fewer)
    setattr(layer, kind[1], left)
    outputs.append(after)


def _cut_units(name: str, layer: Any, width: float) -> None:
    """Cuts a layer that has a number for each unit, such as one that normalises."""
    tensors = {**dict(layer.named_parameters(recurse=False)), **dict(layer.named_buffers(recurse=False))}
    if any(one.ndim > 1 for one in tensors.values()):
        raise BadValue(f"{name} is a {type(layer).__name__}, which cannot be cut to a width; {_CURE}")
    for key, one in tensors.items():
        if one.ndim == 1 and len(one) > 1:
            _keep(layer, key, units := share_of(len(one), width))
            for attribute in ("num_features", "num_channels", "num_parameters"):
                if hasattr(layer, attribute):
                    setattr(layer, attribute, units)
            if isinstance(getattr(layer, "normalized_shape", None), tuple):
                layer.normalized_shape = (units,)
    if isinstance(layer, nn.GroupNorm) and layer.num_channels % layer.num_groups:
        text = f"{name} has {layer.num_groups} groups, which {layer.num_channels} channels do not fill"
        raise BadValue(f"{text}; take other levels")


def _keep(layer: nn.Module, key: str, *sizes: int) -> None:
    """Keeps the first elements of a layer's parameter or buffer."""
    whole = getattr(layer, key)
    kept = whole.detach()[tuple(slice(size) for size in sizes)].clone()
    setattr(layer, key, nn.Parameter(kept, whole.requires_grad) if isinstance(whole, nn.Parameter) else kept)


def in_heads(layer: nn.Module) -> dict[str, tuple[int, int]]:
    """Returns the parameters of a layer of attention that are divided among its heads, by their names in the layer: the
    dimension, and how many units a head has; {} if the layer is no attention."""
    heads = next((value for key in _HEADS if isinstance(value := getattr(layer, key, None), int)), None)
    size = next((value for key in _HEAD_SIZES if isinstance(value := getattr(layer, key, None), int)), None)
    if heads is None and size is None:
        return {}
    found: dict[str, tuple[int, bool]] = {}  # the dimension, and whether it leaves the heads
    for name, one in layer.named_parameters():
        child, _, kind = name.rpartition(".")
        turned = child != "" and type(layer.get_submodule(child)).__name__ == "Conv1D"  # (inputs, outputs)
        child = child or kind.removesuffix("_weight").removesuffix("_bias")
        if _ENTERING.fullmatch(child):
            found[name] = (one.ndim - 1 if turned else 0), False
        elif _LEAVING.fullmatch(child) and one.ndim > 1:
            found[name] = (0 if turned else 1), True
    if size is None and heads is not None:
        leaving = [p.shape[found[n][0]] for n, p in layer.named_parameters() if n in found and found[n][1]]
        size = leaving[0] // heads if leaving else None
    return {name: (dim, size) for name, (dim, _) in found.items()} if size else {}


def all_in_heads(module: nn.Module) -> dict[str, tuple[int, int]]:
    """Returns what `in_heads` does of all layers of a module, by the parameters' names in it."""
    found: dict[str, tuple[int, int]] = {}
    for name, layer in module.named_modules():
        own = in_heads(layer)
        found |= {f"{name}.{key}".lstrip("."): value for key, value in own.items()}
        beside = f"{name.removesuffix('.self')}.output.dense.weight"  # BERT's, which is in another layer
        if own and name.endswith(".self") and beside in dict(module.named_parameters()):
            found[beside] = 1, next(iter(own.values()))[1]
    return found


def divide_hidden(module: nn.Module, level: float) -> None:
    """Divides what leaves each layer but the last by a level in training, and not in evaluation."""
    kinds = (*PRODUCTS, nn.Embedding)
    layers = [one for one in module.modules() if isinstance(one, kinds) or type(one).__name__ == "Conv1D"]
    for layer in layers[:-1]:
        layer.register_forward_hook(lambda one, _, out: out / level if one.training else out)
