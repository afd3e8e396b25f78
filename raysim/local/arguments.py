"""The arguments of `Task.train`: settings with other values, and whether all of them go together."""

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

import torch
from pydantic import ValidationError

from raysim.local.gradients import PerSample
from raysim.local.loop import Plain
from raysim.local.net import Net
from raysim.local.settings import Local
from raysim.parts.errors import BadInput, BadValue, nearest


def changed(local: Local, settings: dict[str, Any], train: Callable[..., Any]) -> Local:
    """Returns settings of local training with other values for some keys, which `train` takes beside its own keywords.

    Raises TypeError for an unknown one, and ValueError for a wrong value.
    """
    for name in settings.keys() - Local.model_fields.keys():
        parameters = signature(train).parameters.values()
        own = [parameter.name for parameter in parameters if parameter.kind == Parameter.KEYWORD_ONLY]
        known = [*own, *Local.model_fields]
        raise TypeError(f"task.train: unknown keyword {name!r}{nearest(name, known)}; known are {', '.join(known)}")
    if "epochs" in settings:
        settings = {"steps": None, **settings}  # or else the scenario's `steps` would count
    try:
        return Local.model_validate({**dict(local), **settings})
    except ValidationError as error:
        from raysim.scenario.explain import explain  # not at the top, for scenarios import this package

        raise BadValue("\n".join(f"task.train: {problem}" for problem in explain(error, Local, settings))) from None


def require_trainable(net: Net, local: Local, part: str | None, needs_loss: bool, gradient: Plain | None) -> None:
    """Raises ValueError for arguments that do not go together. needs_loss: whether a loss is missing."""
    if gradient is not None and any(isinstance(one, PerSample) for one in local.gradients):
        text = "must not have per_sample for an algorithm whose steps train several widths; leave it out"
        raise BadInput("local.gradients", text)
    if needs_loss:
        raise BadValue("task.train: `embedded` needs a `loss`, for the data's own takes no embeddings")
    if part not in (None, "shared", "personal"):
        raise BadValue(f"task.train: part must be 'shared', 'personal' or None, got {part!r}")
    if not net.part(part).parameters:
        raise BadValue(
            "task.train: part 'personal' must have parameters, got none; name them in the scenario's model.personal"
        )


def goes_on(kept: Local, local: Local) -> bool:
    """Whether a training uses the optimiser that keeps its state, perhaps with other numbers."""
    names = [one.optimizer.init(torch.zeros(1)).keys() for one in (local, kept)]
    return type(local.optimizer) is type(kept.optimizer) and names[0] == names[1]
