"""A torch module that is given in Python, as a value of a scenario: run.json keeps its hash only."""

from __future__ import annotations

import copy
import hashlib
import pickle
from dataclasses import dataclass, field
from typing import Any

import cloudpickle
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from raysim.parts.errors import BadValue
from raysim.terms import TorchModule


@dataclass(frozen=True)
class GivenModule:
    """A torch module with its values, or what run.json keeps of one. Those with the same hash are equal."""

    hash: str  # of its printed layers and its parameters and buffers
    content: TorchModule | None = field(default=None, compare=False, repr=False)  # None: described only

    @classmethod
    def of(cls, module: TorchModule) -> GivenModule:
        """Copies a module, so that what is done to it afterwards does not change the scenario.

        Raises BadValue for one that cannot be copied.
        """
        import torch

        from raysim.models.memory import require_own_memory

        require_plain(module)
        require_own_memory(module)  # a copy would share none
        hashed = hashlib.blake2b(repr(module).encode(), digest_size=16)
        for name, value in module.state_dict().items():
            hashed.update(name.encode())
            if isinstance(value, torch.Tensor) and not torch.nn.parameter.is_lazy(value):
                dense = value.detach().cpu().to_dense()  # if it is sparse
                hashed.update(dense.reshape(-1).view(torch.uint8).numpy().tobytes())
        return cls(hashed.hexdigest(), copied(module))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(_validate)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "object", "description": "A torch module in memory: its hash."}


def require_plain(module: TorchModule) -> None:
    """Raises BadValue for a module of TorchScript, whose forward pass is compiled and cannot be changed any more, and
    for one without values."""
    from torch import jit

    if isinstance(module, jit.ScriptModule):
        cure = "give the module that it was made of, or its class"
        raise BadValue(f"must be an ordinary torch.nn.Module, got {type(module).__name__} of TorchScript; {cure}")
    if meta := [name for name, parameter in module.named_parameters() if parameter.is_meta]:
        cure = "make it on the CPU, or give it values, with to_empty and its layers' reset_parameters"
        raise BadValue(f"must have parameters with values, got {meta[0]!r} on the device meta; {cure}")


def copied(module: TorchModule) -> TorchModule:
    """Returns a copy of a module. Raises BadValue if there can be none."""
    try:
        return copy.deepcopy(module)
    except Exception:  # such as for tensors that it keeps from its last call, or computes from its parameters
        pass
    try:
        made: TorchModule = pickle.loads(cloudpickle.dumps(module))
        return made
    except Exception as error:
        text = f"must be a module that can be copied, for each actor has its own, got {type(module).__name__}: {error}"
        raise BadValue(
            f"{text}; give its class instead, or delete from it what is no tensor, module or plain value"
        ) from error


def _validate(value: Any) -> GivenModule:
    if isinstance(value, GivenModule):
        return value
    if isinstance(value, dict) and set(value) == {"hash"}:
        return GivenModule(str(value["hash"]))
    raise ValueError(f"must be a torch module, given from Python, got {type(value).__name__}; use Module.of(module)")
