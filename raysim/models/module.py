"""Any torch module, which need not know of raysim: by the path of its class, or itself, given in Python."""

import hashlib
import pickle
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from types import FunctionType
from typing import Annotated, Any, ClassVar, Self

import cloudpickle
from pydantic import Field, PlainValidator, WithJsonSchema, field_serializer

from raysim.models.names import nearest
from raysim.models.part import ModelPart, share_of
from raysim.parts.errors import BadValue, Problem
from raysim.parts.lazy import nn, torch
from raysim.parts.own import WrongClass, import_class, path_of
from raysim.parts.own_code import send_by_value
from raysim.parts.own_function import Arguments, ImportPath, argument_problems, call, find, parameters_of
from raysim.terms import Inputs, TorchModule

_OFFERED = frozenset({"input_shape", "classes"})
_DESCRIBED = {"type": "object", "description": "A torch module in memory: its hash."}
_PLAIN = (bool, int, float, str)


@dataclass(frozen=True)
class GivenModule:
    """A torch module with its values, or what run.json keeps of one. Those with the same hash are equal."""

    hash: str  # of its printed layers, its parameters and buffers, and its numbers and texts
    content: bytes | None = field(default=None, compare=False, repr=False)  # None: described only

    @classmethod
    def copy_of(cls, module: TorchModule) -> Self:
        """Copies a module, so that what is done to it afterwards does not change the scenario.

        Raises BadValue for one that cannot be copied.
        """
        hashed = hashlib.blake2b(repr(module).encode(), digest_size=16)
        for name, value in module.state_dict().items():
            hashed.update(name.encode())
            if isinstance(value, torch.Tensor) and not torch.nn.parameter.is_lazy(value):
                dense = value.detach().cpu().to_dense()  # if it is sparse
                hashed.update(dense.reshape(-1).contiguous().view(torch.uint8).numpy().tobytes())
        for name, layer in module.named_modules():
            plain = {key: value for key, value in vars(layer).items() if type(value) in _PLAIN and key != "training"}
            hashed.update(repr((name, sorted(plain.items()))).encode())
        send_by_value({type(layer).__module__ for layer in module.modules()})
        try:
            return cls(hashed.hexdigest(), cloudpickle.dumps(module))
        except Exception as error:  # parts of a module raise almost anything
            text = f"must be a module that cloudpickle can copy, got {type(module).__name__}: {error}"
            raise BadValue(f"{text}; give its class, or a function that makes it, instead") from error

    def module(self) -> TorchModule:
        """Returns a new copy of the module. Raises BadValue if it is only described."""
        if self.content is None:
            text = "must be given from Python again, because a run's folder keeps only its hash"
            raise BadValue(f"{text}; give the module, as in Result(folder, model=Module.of(module))", "given")
        module: TorchModule = pickle.loads(self.content)
        return module


def _validate(value: Any) -> GivenModule:
    if isinstance(value, GivenModule):
        return value
    if isinstance(value, dict) and set(value) == {"hash"}:
        return GivenModule(str(value["hash"]))
    raise ValueError(f"must be a torch module, given from Python, got {type(value).__name__}; use Module.of(module)")


class Module(ModelPart):
    """Any torch module, by the import path of its class or of a function that makes it."""

    channels_last: ClassVar[bool] = False  # for such modules may call `view` on images

    takes: ClassVar[tuple[Inputs, ...]] = ("images", "features", "series", "volumes", "text", "named")

    name: str = "module"
    module: Annotated[ImportPath, Field(examples=["my_nets:Net"])]
    """The class of the module, or a function that returns one, such as my_module:Net. Its parameters `input_shape`, a
    tuple such as (channels, height, width), or a dict of tuples where inputs have names, and `classes`, the number of
    outputs, are filled in from the data."""
    args: Arguments = Field(default_factory=dict)
    """Its other arguments, by name."""
    head: str | None = None
    """Name of the sub-module whose input is the embedding of a sample, for algorithms that use embeddings. null: the
    first that is personal or, if nothing is, the last linear layer."""
    weights: str | None = None
    """Path of a local .safetensors, .pth or .pt file with initial weights, as a state dict; a head of another shape is
    left out. null: those that the module itself starts with."""

    given: Annotated[GivenModule, PlainValidator(_validate), WithJsonSchema(_DESCRIBED)] | None = None
    """The module itself instead of its class, with the values that it starts from under every seed; from Python only,
    by `Module.of`. run.json keeps its hash."""

    @field_serializer("given")
    def _describe(self, given: GivenModule | None) -> dict[str, str] | None:
        return None if given is None else {"hash": given.hash}

    @classmethod
    def of(cls, module: TorchModule, **keys: Any) -> Self:
        """Makes the model of a module as it is, with its values. keys: the other keys, such as personal=("head",)."""
        return cls(module=path_of(type(module)), given=GivenModule.copy_of(module), **keys)

    @property
    def embeds_at(self) -> str | None:
        return self.head

    def problems(self) -> Iterator[Problem]:
        if self.given is not None:
            if self.args:
                yield Problem("model.args", "must be left out where the module itself is given, which is made already")
            return
        try:
            factory = find(self.module)
        except WrongClass as error:
            yield Problem("model.module", str(error))
            return
        for argument, text in argument_problems(factory, self.args, _OFFERED):
            yield Problem(f"model.args.{argument}", text)

    def build_at(self, width: float, shape: tuple[int, ...], num_classes: int) -> TorchModule:
        """Builds the module with its parameter `width`, a share or a number of units; without one, cuts its layers."""
        parameters = {} if self.given is not None else parameters_of(find(self.module))
        if "width" not in parameters:
            return super().build_at(width, shape, num_classes)
        whole = self.args.get("width", parameters["width"].default)
        narrow = share_of(whole, width) if isinstance(whole, int) else (whole or 1.0) * width
        return self.model_copy(update={"args": {**self.args, "width": narrow}}).build(shape, num_classes)

    def build(self, shape: tuple[int, ...], num_classes: int) -> TorchModule:
        """Builds the module. Raises ValueError if it is not one, or does not have the sub-module `head`."""
        from raysim.models.layers import contiguous
        from raysim.models.pretrained import load_weights

        if self.given is None:
            module = call(find(self.module), given=self.args, offered={"input_shape": shape, "classes": num_classes})
        else:
            module = self.given.module()
        if not isinstance(module, nn.Module):
            raise BadValue(f"{self.module} must give a torch.nn.Module, got {module!r}", "module")
        names = [name for name, _ in module.named_modules(remove_duplicate=False)]
        if self.head is not None and self.head not in names[1:]:
            near = nearest(self.head, names[1:])
            raise BadValue(f"must be a sub-module's name, got {self.head!r}; nearest are {near}", "head")
        if self.weights is not None:
            load_weights(module, self.weights)
        module.register_forward_pre_hook(contiguous)
        return module


def model_block(value: Any) -> Any:
    """Returns the model of a torch module, or of a class of them; other values as they are.

    Both may be given in Python. A class or a function may be named: "my_nets:Net" is short for {name: module, module:
    "my_nets:Net"}.
    """
    named = value.get("name") if isinstance(value, dict) else value
    found = value
    if isinstance(named, str) and ":" in named:
        with suppress(WrongClass):  # the check of the scenario reports it
            found = import_class(named)
    makes = isinstance(named, str) and isinstance(found, FunctionType)
    if not makes and "torch" in sys.modules:  # without torch loaded, the value cannot be a module
        if isinstance(value, nn.Module):
            return Module.of(value)
        makes = isinstance(found, type) and issubclass(found, nn.Module)
    if makes and isinstance(value, dict):
        raise ValueError(f'must be {{name: module, module: "{named}"}}, with other keys in it, got name: {named}')
    return {"name": "module", "module": value} if makes else value
