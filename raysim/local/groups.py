"""Groups of parameters with a rate and a weight decay of their own."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, NamedTuple

from pydantic import Field

from raysim.models.names import names_of
from raysim.parts.errors import BadValue, nearest
from raysim.parts.part import NonNegative
from raysim.schedules import Schedulable

if TYPE_CHECKING:
    from torch import Tensor

    from raysim.local.net import Net
    from raysim.local.trainable import Trainable

NORMS = "norms"


class ParameterGroup(Schedulable):
    """Parameters that are trained otherwise than the rest. Of several groups with a parameter, the last counts."""

    parameters: Annotated[tuple[str, ...], Field(min_length=1, examples=[["norms", "*.bias"]])]
    """Patterns of parameters' names, such as `head.*`; `norms` stands for all parameters of normalisation layers."""
    lr_factor: NonNegative = 1.0
    """Times `lr`, this is their learning rate. 0: they stay as they are."""
    weight_decay: NonNegative | None = None
    """Their weight decay. null: that of all."""


class Grouped(NamedTuple):
    """Settings of each entry of a trained vector."""

    factors: Tensor | None  # (n,), of the learning rate; None: all are 1
    decay: Tensor | float  # (n,), or one for all


def grouped(groups: tuple[ParameterGroup, ...], weight_decay: float, net: Net, part: Trainable) -> Grouped:
    """Returns what each entry of the part's vector is trained with. Raises BadValue if a pattern matches nothing."""
    if not groups:
        return Grouped(None, weight_decay)
    factors, of_factors = part.flat()
    decay, of_decay = part.flat()
    factors.fill_(1.0)
    decay.fill_(weight_decay)
    names, every = [entry.name for entry in net.layout.entries], names_of(net.module)
    for group in groups:
        for pattern in group.parameters:
            matched = {first for first in names if any(fnmatchcase(name, pattern) for name in every[first])}
            found = set(net.norms) if pattern == NORMS else matched
            if not found:
                known = "no normalisation layer" if pattern == NORMS else f"none{nearest(pattern, names)}"
                text = f"must match trained parameters, got {pattern!r} and {known}"
                raise BadValue(text, "groups.parameters")
            for name, factor, decayed in zip(names[part.which], of_factors, of_decay, strict=True):
                if name in found:
                    factor.fill_(group.lr_factor)
                    decayed.fill_(weight_decay if group.weight_decay is None else group.weight_decay)
    return Grouped(factors, decay)
