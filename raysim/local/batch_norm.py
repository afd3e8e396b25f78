"""BatchNorm where a batch has no statistics."""

from typing import Any

from torch import Tensor, nn


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
