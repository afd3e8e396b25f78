"""The normalisation layers of a module, and what becomes of them in a federation."""

from torch import nn

from raysim.models.layers import ChannelLayerNorm
from raysim.models.part import Norm
from raysim.parts.errors import BadValue

NORMS = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm, ChannelLayerNorm)


def norms_of(module: nn.Module) -> dict[str, nn.Module]:
    """Returns the normalisation layers inside a module, by their names."""
    return {name: layer for name, layer in module.named_modules() if name and isinstance(layer, NORMS)}


def required_norms(module: nn.Module, norm: Norm) -> dict[str, nn.Module]:
    """Returns the layers that `model.norm` is about: none if it is average. Raises BadValue if there are none else."""
    found = {} if norm == "average" else norms_of(module)
    if norm != "average" and not found:
        raise BadValue(f"must be average, for the model has no normalisation layer, got {norm}; leave it out", "norm")
    return found
