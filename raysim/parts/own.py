"""Classes from outside of raysim, by module and class."""

import importlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter
from pathlib import PurePath
from typing import Any

from actors.fault import OURS, frames_of
from raysim.parts.process import isolated

_GIVEN: dict[str, Any] = {}  # what module:Class stands for here, whatever this process would import


class WrongClass(ValueError):
    """A class that cannot be a part of the kind for which it is named. Its text says what must hold."""


def give(objects: Mapping[str, Any]) -> None:
    """From now on, module:Class stands for one of these objects, by which another process has sent it."""
    _GIVEN.update(objects)


@contextmanager
def giving(objects: Mapping[str, Any]) -> Iterator[None]:
    """Within the block, module:Class stands for one of these objects."""
    before = dict(_GIVEN)
    give(objects)
    try:
        yield
    finally:
        _GIVEN.clear()
        give(before)


def is_given(path: str) -> bool:
    """Whether module:Class stands for an object that was given to this process."""
    return path in _GIVEN


def import_class(path: str) -> Any:
    """Returns what is at module:Class. Raises WrongClass if it cannot be imported.

    What the module does to this process when it is first imported, such as to seed generators, is undone: it would else
    decide the bits of what comes next in this process alone.
    """
    if path in _GIVEN:
        return _GIVEN[path]
    module, _, attribute = path.partition(":")
    text = "must be module:Class, with the module here or on PYTHONPATH"
    if module.endswith(".py") or not all(map(str.isidentifier, module.split("."))):
        name = PurePath(module.strip(".")).name.removesuffix(".py")
        text = f"{text}, and named as Python imports it, got {path!r}"
        raise WrongClass(f"{text}; write {name or 'my_module'}:{attribute}, say")
    with import_errors(f"must be module:Class, which can be imported, got {path!r}, whose import raises"):
        if module not in sys.modules:
            with isolated():
                importlib.import_module(module)
        return attrgetter(attribute)(sys.modules[module])


@contextmanager
def import_errors(what: str) -> Iterator[None]:
    """Raises WrongClass for what the block raises. what: how its text begins."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a module can raise anything while it is imported
        raises = f"{type(error).__name__}: {str(error).partition(chr(10))[0].rstrip('.')}"
        if getattr(error, "code", None) == "model-field-missing-annotation":
            raises += "; give each key a type, such as `key: float = 0.5`, or write `key: ClassVar = 0.5` for what is "
            raises += "no key"
        if isinstance(error, ModuleNotFoundError):
            raises += "; modules are found in this folder and on PYTHONPATH"
        where = f", raised at {frames[-1].place}" if (frames := frames_of(error)) else ""
        raise WrongClass(f"{what} {raises}{where}") from error


def path_of(part: type[Any]) -> str:
    """Returns the path module:Class of a class."""
    return f"{part.__module__}:{part.__qualname__}"


def require_part(found: Any, bases: tuple[type[Any], ...], got: str) -> None:
    """Raises WrongClass unless a class can be a part of a kind. bases: the base classes of the kind; got: the name
    as the user wrote it."""
    part: Any = found
    if not (isinstance(found, type) and issubclass(found, bases)):
        must = " or ".join(map(public_path, bases))
        raise WrongClass(f"must name a subclass of {must}, got {got!r}, which is {found!r}")
    if lacking := sorted(getattr(found, "__abstractmethods__", ())):
        raise WrongClass(f"must name a class that defines {', '.join(lacking)}, got {got!r}, which does not")
    if part.model_fields["name"].annotation is not str:  # a Literal could not be module:Class
        raise WrongClass(f"must name a class whose field is `name: str`, got {got!r}, where it is of another type")
    if taken := sorted(part.model_fields.keys() & part.__class_vars__):
        text = f"must name a class whose keys are not what its base uses otherwise, got {got!r} with a key {taken[0]!r}"
        raise WrongClass(f"{text}; rename it, or write `{taken[0]}: ClassVar = ...` to set what the base means by it")
    for name, own, meant in _replaced(found):
        if isinstance(meant, property) and inspect.isfunction(own):
            text = f"must name a class whose `{name}` is a @property, got {got!r}{place_of(own)}"
            raise WrongClass(f"{text}; make it one")
        if inspect.isfunction(meant) and inspect.isfunction(own) and not _accepts(own, asked := _required(meant)):
            text = f"must name a class whose `{name}` takes {asked}, got {got!r}, where it takes {_bare(own)}"
            raise WrongClass(f"{text}{place_of(own)}; give it these parameters")


def _replaced(part: type[Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yields the names of what raysim's classes define and a user's class replaces, with the user's and raysim's."""
    ours = [base for base in reversed(part.__mro__) if base.__module__.partition(".")[0] in OURS]
    for name, meant in {name: value for base in ours for name, value in vars(base).items()}.items():
        if name[:1] != "_" and (own := inspect.getattr_static(part, name)) is not meant:
            yield name, own, meant


def _bare(function: Any) -> inspect.Signature:
    every = inspect.signature(function).parameters.values()
    return inspect.Signature([parameter.replace(annotation=parameter.empty) for parameter in every])


def _required(method: Any) -> inspect.Signature:
    every = _bare(method).parameters.values()
    return inspect.Signature([one for one in every if one.default is one.empty and one.kind < one.VAR_POSITIONAL])


def _accepts(method: Any, asked: inspect.Signature) -> bool:
    try:
        inspect.signature(method).bind(*asked.parameters)
    except TypeError:
        return False
    return True


def place_of(function: Any) -> str:
    """Says in which file and line a function of a user's own begins; nothing of others."""
    code = getattr(function, "__code__", None)
    if code is None or function.__module__.partition(".")[0] in OURS:
        return ""
    return f" ({code.co_filename}:{code.co_firstlineno})"


def public_path(base: type[Any]) -> str:
    """Returns where users find the base class of a kind: in the package of its module, such as raysim.world.Delay."""
    return ".".join((*base.__module__.split(".")[:2], base.__qualname__))
