"""Functions and classes that a scenario file names as `module:name`, and the arguments that it gives them."""

import inspect
import json
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from raysim.parts.errors import nearest
from raysim.parts.own import WrongClass, import_class, path_of
from raysim.parts.part import as_lists


def _path_of(value: Any) -> Any:
    """Returns the import path of a function or class that is given in Python, and any other value as it is."""
    if callable(value) and not hasattr(value, "__qualname__"):  # such as functools.partial
        text = "must be a function or a class, or its path module:name, because other processes import it"
        got = f"got an object of {type(value).__name__}"
        raise ValueError(f"{text}, {got}; give the function or class, and its other arguments as `args`")
    return path_of(value) if callable(value) else value


def _plain(value: dict[str, Any]) -> dict[str, Any]:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        must = "must hold texts, finite numbers, true, false, null, lists and blocks only"
        raise ValueError(f"{must}: {error}") from None
    return value


ImportPath: TypeAlias = Annotated[
    str, BeforeValidator(_path_of), Field(pattern=r"^[^:]+:[^:]+$", examples=["my_module:name"])
]
"""Where a function or class is imported from: my_module:name. In Python, it may be given itself."""
Arguments: TypeAlias = Annotated[dict[str, Any], AfterValidator(_plain)]
"""Arguments by name, as a scenario file can hold them."""


def find(path: str) -> Callable[..., Any]:
    """Imports what `module:name` names. Raises own.WrongClass, which says what must hold, if it cannot be called, or
    is of Python's own library: with arguments from a stranger's file, `os:system` would do anything."""
    found = import_class(path)
    if not callable(found):
        raise WrongClass(f"must name a function or a class, got {path!r}, which is {found!r}")
    if _is_of_python(found):
        must = "must name a function or a class of yours or of a package"
        raise WrongClass(f"{must}, got {path!r}, which is Python's own; call it in one of yours")
    function: Callable[..., Any] = found
    return function


def _is_of_python(found: Any) -> bool:
    name = str(getattr(found, "__module__", None)).partition(".")[0]
    file = getattr(sys.modules.get(name), "__file__", None)  # a user's own module may have such a name, too
    return name in sys.stdlib_module_names and (file is None or Path(file).is_relative_to(sysconfig.get_path("stdlib")))


def argument_problems(
    function: Callable[..., Any], given: Mapping[str, Any], offered: frozenset[str], first: int = 0
) -> Iterator[tuple[str, str]]:
    """Yields (argument, what is wrong with it) for arguments that a function cannot be called with.

    offered: arguments that it gets without being given them, if it has parameters of these names. first: how many
    positional arguments come before these.
    """
    try:
        every = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # C functions have none
        return
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in every)
    by_name = {p.name: p for p in every[first:] if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    for name in given:
        if name not in by_name and not open_ended:
            known = ", ".join(by_name) or "none"
            yield name, f"unknown argument{nearest(name, by_name)}; known here: {known}"
    for name, parameter in by_name.items():
        if parameter.default is parameter.empty and name not in given and name not in offered:
            yield name, "must be given, got nothing"


def problems_of(path: str, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields (key, what is wrong) of a function at an import path that is called with two tensors and these arguments.

    If the function cannot be imported, the key is `name`, where the short form has its path.
    """
    try:
        function = find(path)
    except WrongClass as error:
        yield "name", str(error)
        return
    yield from argument_problems(function, given, frozenset(), first=2)


def call(function: Callable[..., Any], *values: Any, given: Mapping[str, Any], offered: Mapping[str, Any]) -> Any:
    """Calls a function with positional values, the given arguments, and those of the offered ones that it has a
    parameter for."""
    asked = parameters_of(function)
    wanted = {name: value for name, value in offered.items() if name in asked and name not in given}
    return function(*values, **wanted, **{name: as_lists(value) for name, value in given.items()})


def parameters_of(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Returns the parameters of a function by name; {} of one that tells of none."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def as_function(value: Any, base: type, kept: tuple[str, ...] = ()) -> Any:
    """Spells out the short form of a function: "my_module:name", or a block with that name, becomes {name: function,
    function: my_module:name}.

    A function may be given itself, in Python. Keys of the block other than `kept` are arguments of the function. The
    name of a subclass of `base` is returned as it is, and so are all other values.
    """
    if isinstance(value, BaseModel):
        return value
    block = value if isinstance(value, dict) else {"name": value}
    name = _path_of(block.get("name"))
    if not isinstance(name, str) or ":" not in name:
        return value
    try:
        found: Any = find(name)
    except WrongClass:  # the check of the scenario reports it
        found = None
    if isinstance(found, type) and issubclass(found, base):
        return value
    of_part = {key: block[key] for key in kept if key in block}
    given = block.get("args", {})
    others = {key: inner for key, inner in block.items() if key not in ("name", "args", *kept)}
    return {"name": "function", "function": name, "args": {**given, **others}, **of_part}
