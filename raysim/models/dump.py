"""Torch modules as bytes, from which each process makes a copy that shares nothing with the first."""

import io
from types import SimpleNamespace
from typing import Any

import cloudpickle
import torch
from torch import nn
from torch.nn.utils import parametrize

from raysim.parts.errors import BadValue
from raysim.parts.own_code import send_by_value


def dump(module: nn.Module) -> bytes:
    """Returns a module as bytes, with classes of users' own, and with functions that know it, such as hooks.

    A deep copy would share those functions, which would continue with the first module. Raises BadValue if a part of
    the module cannot be pickled, such as a lock.
    """
    send_by_value({type(layer).__module__ for layer in module.modules()})
    stream = io.BytesIO()
    try:
        torch.save(module, stream, pickle_module=SimpleNamespace(__name__="cloudpickle", Pickler=_Pickler))
    except Exception as error:  # parts of a module raise almost anything
        text = f"must be a module that can be copied, for each actor has its own, got {type(module).__name__}: {error}"
        cure = "give its class instead, or delete from it what is no tensor, module or plain value"
        raise BadValue(f"{text}; {cure}") from error
    return stream.getvalue()


def load(content: bytes) -> nn.Module:
    """Returns a new module, on the CPU."""
    module: nn.Module = torch.load(io.BytesIO(content), map_location="cpu", weights_only=False)
    return module


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Takes modules with parametrisations, too, whose classes are made when these are registered."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, nn.Module) and parametrize.is_parametrized(value):
            kind = parametrize.type_before_parametrizations(value)
            return object.__new__, (kind,), dict(vars(value)), None, None, _parametrise
        return super().reducer_override(value)


def _parametrise(module: nn.Module, state: dict[str, Any]) -> None:
    module.__dict__.update(state)
    parametrize._inject_new_class(module)
    for name in state["_modules"]["parametrizations"]:
        parametrize._inject_property(module, name)
