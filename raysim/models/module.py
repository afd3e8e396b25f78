"""Any torch module, which need not know of raysim."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from types import FunctionType
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, field_serializer

from raysim.models.given import GivenModule, require_plain
from raysim.models.part import ModelPart
from raysim.parts.errors import BadValue, Problem
from raysim.parts.own import WrongClass, import_class, path_of
from raysim.parts.own_function import Arguments, ImportPath, argument_problems, call, find
from raysim.terms import Inputs, TorchModule

_OFFERED = frozenset({"input_shape", "classes"})


class Module(ModelPart):
    """Any torch module, by the import path of its class or of a function that makes it."""

    channels_last: ClassVar[bool] = False  # for such modules may call `view` on images

    takes: ClassVar[tuple[Inputs, ...]] = ("images", "features", "series", "text", "named")

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

    given: GivenModule | None = None
    """The module itself instead of its class, with the values that it starts from under every seed; from Python only,
    by `Module.of`. run.json keeps its hash."""

    @field_serializer("given")
    def _describe(self, given: GivenModule | None) -> dict[str, str] | None:
        return None if given is None else {"hash": given.hash}

    @classmethod
    def of(cls, module: TorchModule, **keys: Any) -> Self:
        """Makes the model of a module as it is, with its values. keys: the other keys, such as personal=("head",)."""
        return cls(module=path_of(type(module)), given=GivenModule.of(module), **keys)

    def reads(self) -> tuple[str, ...]:
        return (self.weights,) if self.weights else ()

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

    def build(self, shape: tuple[int, ...], num_classes: int) -> TorchModule:
        """Builds the module. Raises ValueError if it is not one, or does not have the sub-module `head`."""
        from torch import nn

        from raysim.models.layers import Contiguous
        from raysim.models.names import nearest
        from raysim.models.pretrained import load_weights

        if self.given is None:
            module = call(find(self.module), given=self.args, offered={"input_shape": shape, "classes": num_classes})
        else:
            module = self.given.module()
        if not isinstance(module, nn.Module):
            raise BadValue(f"{self.module} must give a torch.nn.Module, got {module!r}", "module")
        require_plain(module)
        names = [name for name, _ in module.named_modules(remove_duplicate=False)]
        if self.head is not None and self.head not in names[1:]:
            near = nearest(self.head, names[1:])
            raise BadValue(f"must be a sub-module's name, got {self.head!r}; nearest are {near}", "head")
        if self.weights is not None:
            load_weights(module, self.weights)
        module.register_forward_pre_hook(Contiguous())
        return module


def model_block(value: Any) -> Any:
    """Returns the model of a torch module, or of a class of them; other values as they are.

    Both may be given in Python. A class or a function may be named: "my_nets:Net" is short for {name: module, module:
    "my_nets:Net"}.
    """
    found = value
    if isinstance(value, str) and ":" in value:
        with suppress(WrongClass):  # the check of the scenario reports it
            found = import_class(value)
    if isinstance(value, str) and isinstance(found, FunctionType):
        return {"name": "module", "module": value}
    if "torch" not in sys.modules:  # without torch loaded, the value cannot be a module
        return value
    from torch import nn

    if isinstance(value, nn.Module):
        return Module.of(value)
    return {"name": "module", "module": value} if isinstance(found, type) and issubclass(found, nn.Module) else value
