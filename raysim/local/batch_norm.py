"""BatchNorm's statistics over all samples, which are collected in several parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

if TYPE_CHECKING:
    from raysim.local.model import Model
    from raysim.local.net import Net
    from raysim.models.layout import Layout
    from raysim.terms import Record


def tracking(module: nn.Module) -> dict[str, nn.Module]:
    """Returns the layers that keep running statistics, by their names."""
    return {
        name: norm for name, norm in module.named_modules() if isinstance(norm, _NormBase) and norm.track_running_stats
    }


def sums(net: Net, model: Model, batches: Iterable[Tensor]) -> Record:
    """Returns what statistics over all samples follow from: of each buffer, how many values it is about, and the sum of
    these, or of their squares in the place of variances, float64 (b,).

    Each batch is normalised by its own statistics, as in training, whose other layers behave as in evaluation.
    """
    places = {entry.name: slice(entry.offset, entry.offset + entry.size) for entry in net.layout.buffers}
    count, total = torch.zeros(2, len(model.buffers), dtype=torch.float64, device=model.buffers.device)
    hooks = []
    with net.evaluating(model) as module:
        for name, norm in tracking(module).items():

            def add(_: nn.Module, given: tuple[Tensor], name: str = name) -> None:
                values = given[0].double().transpose(0, 1).flatten(1)
                for kind, added in (("mean", values), ("var", values.square())):
                    place = places[f"{name}.running_{kind}"]
                    count[place] += values.shape[1]
                    total[place] += added.sum(1)

            norm.train()
            hooks.append(norm.register_forward_pre_hook(add))
        try:
            for x in batches:
                module(x)
        finally:
            for hook in hooks:
                hook.remove()
    return {"count": count, "total": total}


def pooled(buffers: Tensor, layout: Layout, found: Sequence[Record]) -> Tensor:
    """Returns buffers with the statistics over all samples that `sums` collected, in several parts."""
    count, total = (torch.stack([part[key] for part in found]).sum(0) for key in ("count", "total"))
    means, made = total / count, buffers.clone()
    places = {entry.name: slice(entry.offset, entry.offset + entry.size) for entry in layout.buffers}
    for name, place in places.items():
        if not (count[place] > 0).all():
            continue
        mean = means[places[name.replace("running_var", "running_mean")]]
        made[place] = (means[place] - mean.square() if name.endswith("running_var") else mean).float()
    return made
