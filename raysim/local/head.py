"""The sub-module that embeddings enter, which is the head unless another one is named, and what is asked of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from raysim.local.outputs import LossFunction, cross_entropy
from raysim.models.names import is_pattern, is_under, nearest
from raysim.parts.errors import BadValue

if TYPE_CHECKING:
    from raysim.local.net import Net


def head_of(module: nn.Module, name: str | None, personal: tuple[str, ...]) -> nn.Module:
    """Returns the sub-module of a name; if there is none, the first of the personal part or, where nothing is personal
    but by patterns, the last linear layer.

    Raises ValueError if there is none.
    """
    modules: dict[str, nn.Module] = dict(module.named_modules(remove_duplicate=False))
    if name is not None:
        if not name or name not in modules:
            near = nearest(name, [one for one in modules if one])
            raise BadValue(f"task.embed: must be given the name of a sub-module, got {name!r}; nearest are {near}")
        return modules[name]
    if named := [one for one in personal if not is_pattern(one)]:
        names = [name for name, _ in module.named_parameters(remove_duplicate=False)]
        first = next(one for name in names for one in named if is_under(name, (one,)))
        return modules[first] if first in modules else modules[first.rpartition(".")[0]]
    linear = [m for name, m in module.named_modules() if isinstance(m, nn.Linear) and ".lora_" not in name]
    if not linear:
        raise BadValue("task.embed: the model must have a linear layer, or `model.personal`; it has neither")
    return linear[-1]


@contextmanager
def entering(module: nn.Module) -> Iterator[list[Tensor]]:
    """Gives a list to which what enters a sub-module is added whenever that is called."""
    entered: list[Tensor] = []
    hook = module.register_forward_pre_hook(lambda _, given: entered.append(given[0]))
    try:
        yield entered
    finally:
        hook.remove()


@contextmanager
def embedding(head: nn.Module, loss: LossFunction) -> Iterator[LossFunction]:
    """Makes a loss of outputs and targets of one that also takes what enters the head, with its gradient."""
    with entering(head) as entered:
        yield lambda output, target: loss(output, target, entered.pop().float())  # where it is halved


def rows_of(net: Net, labels: Tensor) -> Tensor | None:
    """Returns which parameters some labels have, (size,) of 0 and 1: all but the rows of other labels in the head; None
    if these are all parameters."""
    if net.loss is not cross_entropy or len(labels) >= net.classes:
        return None
    head, rows = {id(one) for one in net.head.parameters()}, torch.ones_like(net.w)
    for parameter, view in zip(net.parameters, net.layout.views(rows), strict=True):
        if id(parameter) in head and parameter.shape[0] >= net.classes:
            view.zero_()
            view[labels.to(view.device)] = 1
    return rows
