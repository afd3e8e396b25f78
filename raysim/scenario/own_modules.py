"""The modules of a user's own that a scenario names, and the files that they are made of."""

import ast
import inspect
import linecache
import re
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from actors.fault import OURS
from raysim.parts.part import Part

MAIN = "__main__"  # the module of a script or notebook
_PATH = re.compile(r"([A-Za-z_]\w*(?:\.\w+)*):([A-Za-z_]\w*)[\w.]*")  # module:Class
_INSTALLED = {Path(sysconfig.get_path(kind)) for kind in ("purelib", "platlib", "stdlib")}
_RECEIVED: dict[str, str] = {}  # the source of the script or notebook that sent this process its work


def own_modules(scenario: Part) -> list[str]:
    """Returns the modules of all classes from outside in a scenario, and of all texts in it like module:Class, sorted.

    Bases of a class count too, if they are parts.
    """
    found = set()
    for value in _values(scenario):
        if isinstance(value, Part):
            found |= {cls.__module__ for cls in type(value).__mro__ if issubclass(cls, Part)}
        elif isinstance(value, str) and (path := _PATH.fullmatch(value)) and (path[1] == MAIN or root_of(path[1])):
            found.add(path[1])
    return sorted(module for module in found if module.partition(".")[0] not in OURS)


def parts_in(part: Part) -> Iterator[Part]:
    """Yields a part, and all parts within it."""
    return (value for value in _values(part) if isinstance(value, Part))


def _values(value: Any) -> Iterator[Any]:
    """Yields a part, its values, and all values within them."""
    return (inner for _, inner in by_key(value))


def by_key(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yields (dotted key, value) of a part, of its values, and of all values within them. key: that of the value."""
    yield key, value
    inner = vars(value) if isinstance(value, Part) else value
    if isinstance(inner, dict | tuple | list):
        for step, item in inner.items() if isinstance(inner, dict) else enumerate(inner):
            yield from by_key(item, f"{key}.{step}" if key else str(step))


def root_of(module: str) -> Path | None:
    """Returns the folder from which a module is imported; None if that is not known."""
    try:
        spec = find_spec(module.partition(".")[0])
    except (ImportError, ValueError):  # such as a script, which is not imported
        return None
    if spec and spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations))).parent
    return Path(spec.origin).parent if spec and spec.origin and spec.has_location else None


class CodeFile(NamedTuple):
    """A file that a module is made of."""

    root: Path | None  # the folder from which it is imported; None for a script, and for a notebook's cells
    content: bytes


Sources = dict[Path, CodeFile]  # by path below the folder from which each is imported


def sources_in(scenario: Part) -> dict[str, Sources]:
    """Returns the files that each of a scenario's `own_modules` is made of; {} for one of which they are not known."""
    return {
        module: _main_sources(scenario) if module == MAIN else sources_of(module) for module in own_modules(scenario)
    }


def sources_of(module: str) -> Sources:
    """Returns the files that a module is made of: its own file, and those of the modules that it imports, except
    Python's own and those of installed packages.

    For a module of an installed package, it is the module's own file only. Returns {} if they are not known.
    """
    home = root_of(module)

    def root_for(name: str) -> Path | None:
        is_beside = home is None or (home / name).is_dir() or (home / f"{name}.py").is_file()
        return home if is_beside else _root_of_own(name)

    return {path: CodeFile(root, root.joinpath(path).read_bytes()) for path, root in _files(module, root_for).items()}


def _main_sources(scenario: Part) -> Sources:
    """Returns the source of the script, or of a notebook's cells, that classes of a scenario are in, and the files of
    the user's own modules that it uses."""
    if not (text := main_source(scenario)):
        return {}
    found = {Path(f"{MAIN}.py"): CodeFile(None, text.encode())}
    for module in sorted(_used(text)):
        found |= sources_of(module) if _root_of_own(module.partition(".")[0]) else {}
    return found


def _used(text: str) -> set[str]:
    """Returns the modules of what the text of a script or notebook names, as they are in its variables."""
    try:
        names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    except SyntaxError:  # such as a cell with a line that is no Python
        return set()
    values = (vars(sys.modules[MAIN]).get(name) for name in names)
    modules = (value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", None) for value in values)
    return {module for module in modules if isinstance(module, str)} - {MAIN}


def main_objects(scenario: Part) -> dict[str, Any]:
    """Returns the functions and classes of a script or notebook that texts such as __main__:metric name, by name."""
    paths = (_PATH.fullmatch(value) for value in _values(scenario) if isinstance(value, str))
    names = {path[2] for path in paths if path and path[1] == MAIN}
    return {name: vars(sys.modules[MAIN])[name] for name in sorted(names) if name in vars(sys.modules[MAIN])}


def main_source(scenario: Part) -> str:
    """Returns the source of a script, or of a notebook's cells, that classes and functions of a scenario are in."""
    found = [*(type(part) for part in parts_in(scenario)), *main_objects(scenario).values()]
    with_bases = [base for one in found for base in (inspect.getmro(one) if inspect.isclass(one) else (one,))]
    own = [one for one in with_bases if one.__module__ == MAIN]  # a base class may be in another cell
    functions = [value for one in own for value in (one, *vars(one).values()) if inspect.isfunction(value)]
    files = {function.__code__.co_filename for function in functions if function.__module__ == MAIN}  # cells are files
    cells = {"".join(linecache.getlines(file)) for file in files}
    return "\n".join(sorted(cells)) or _RECEIVED.get(MAIN, "")


def receive(roots: Iterable[str], main: str, objects: dict[str, Any]) -> None:
    """Lets this process find the modules of the process that sent a scenario.

    roots: folders that they are imported from. main: the source of its script. objects: what `main_objects` returns.
    """
    sys.path.extend(root for root in roots if root not in sys.path)
    if main:
        _RECEIVED[MAIN] = main
    for name, value in objects.items():
        setattr(sys.modules[MAIN], name, value)


def is_installed(root: Path) -> bool:
    """Whether the modules in a folder are those of installed packages, or of Python itself."""
    return root in _INSTALLED or root.name in ("site-packages", "dist-packages")


def modules_named(value: Any) -> set[str]:
    """Returns the modules in all texts like module:Class in plain data."""
    return {path[1] for text in _values(value) if isinstance(text, str) and (path := _PATH.fullmatch(text))}


def files_of(module: str, root: Path) -> list[Path]:
    """Returns the files below a folder that a module there is made of, by paths below that folder."""
    return [*_files(module, lambda name: root)]


def _files(module: str, root_for: Callable[[str], Path | None]) -> dict[Path, Path]:
    """Returns the folders of the files that a module is made of, by their paths below these folders, sorted.

    root_for: returns the folder from which a package or module is imported; None for one that does not count.
    """
    found: dict[Path, Path] = {}
    todo = [module]
    while todo:
        names = todo.pop().split(".")
        if names[0] in OURS or (root := root_for(names[0])) is None:
            continue
        for depth in range(1, len(names) + 1):
            place = Path(*names[:depth])
            for path, inside in ((place / "__init__.py", depth), (place.with_suffix(".py"), depth - 1)):
                if path not in found and (root / path).is_file():
                    found[path] = root
                    todo += [] if is_installed(root) else _imports(root / path, names[:inside])
    return dict(sorted(found.items()))


def _root_of_own(name: str) -> Path | None:
    """Returns the folder from which a package or module is imported; None for one of raysim, Python or a package."""
    return None if name in OURS or is_foreign(name) else root_of(name)


def is_foreign(name: str) -> bool:
    """Whether a module is Python's own or that of an installed package."""
    return name in sys.stdlib_module_names or ((root := root_of(name)) is not None and is_installed(root))


def _imports(file: Path, package: list[str]) -> Iterator[str]:
    """Yields the dotted names that a file imports: modules, or things in modules. package: the one that the file is
    in."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):  # importing the module reports it
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            yield from (".".join([*above, *filter(None, [node.module]), alias.name]) for alias in node.names)
        elif isinstance(node, ast.Call):
            match node.func, node.args:
                case ast.Attribute(attr=called) | ast.Name(id=called), [ast.Constant(value=str(named)), *_]:
                    yield from [named] if called in ("import_module", "__import__") else ()
