"""BatchNorm where a batch has no statistics, and its statistics over all samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

if TYPE_CHECKING:
    from raysim.local.model import Model
    from raysim.local.net import Net
    from raysim.models.layout import Layout
    from raysim.terms import Record


def spare_single_values(module: nn.Module) -> None:
    """Makes the BatchNorms of a module use their running statistics for inputs with a single value a channel.

    Such inputs have no variance, so torch raises an error for them in training mode. All other inputs are normalised as
    before.
    """
    for norm in module.modules():
        if isinstance(norm, nn.modules.batchnorm._BatchNorm) and norm.track_running_stats:
            norm.register_forward_pre_hook(_enter)
            norm.register_forward_hook(_leave, always_call=True)


def _enter(norm: nn.Module, inputs: tuple[Any, ...]) -> None:
    single = bool(inputs) and isinstance(inputs[0], Tensor) and inputs[0].numel() == inputs[0].shape[1]
    if norm.training and single:
        norm.training = False
        norm._spared = True  # type: ignore[assignment]


def _leave(norm: nn.Module, *_: Any) -> None:
    if norm.__dict__.pop("_spared", False):
        norm.training = True


# --- statistics over all samples --------------------------------------------------------------------------------------


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
