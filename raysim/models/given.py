"""A torch module that is given in Python, as a value of a scenario: run.json keeps its hash only."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from raysim.parts.errors import BadValue
from raysim.terms import TorchModule

_PLAIN = (bool, int, float, str)


@dataclass(frozen=True)
class GivenModule:
    """A torch module with its values, or what run.json keeps of one. Those with the same hash are equal."""

    hash: str  # of its printed layers, its parameters and buffers, and its numbers and texts
    content: bytes | None = field(default=None, compare=False, repr=False)  # None: described only

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
                hashed.update(dense.reshape(-1).contiguous().view(torch.uint8).numpy().tobytes())
        for name, layer in module.named_modules():
            own = {key: value for key, value in vars(layer).items() if type(value) in _PLAIN and key != "training"}
            hashed.update(repr((name, sorted(own.items()))).encode())
        return cls(hashed.hexdigest(), _dumped(module))

    def module(self) -> TorchModule:
        """Returns a new copy of the module. Raises BadValue if it is only described."""
        from raysim.models.dump import load

        if self.content is None:
            text = "must be given from Python again, for a run's folder keeps only its hash"
            raise BadValue(f"{text}; give the module, as in Result(folder, model=Module.of(module))", "given")
        return load(self.content)

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


def _dumped(module: TorchModule) -> bytes:
    from raysim.models.dump import dump

    try:
        return dump(module)
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
