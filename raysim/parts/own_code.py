"""Code of users' own: the modules that a scenario names, the files that they are made of, and how they travel.

cloudpickle sends classes and functions of files that may change by value, so that another process need not find these
files. What is in an installed package is imported there.
"""

import ast
import inspect
import io
import linecache
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from types import CodeType
from typing import Any, NamedTuple

import cloudpickle

from actors.fault import OURS, is_installed
from raysim.parts.own import WrongClass, import_class, is_given
from raysim.parts.part import Part

MAIN = "__main__"  # the module of a script or notebook
_PATH = re.compile(r"([A-Za-z_]\w*(?:\.\w+)*):([A-Za-z_]\w*)[\w.]*")  # module:Class
_PARSING = Lock()  # in Python 3.11, threads that make syntax trees at the same time can fail with a SystemError


class CodeFile(NamedTuple):
    """A file that a module is made of."""

    root: Path | None  # the folder from which it is imported; None for a script, and for a notebook's cells
    content: bytes


Sources = dict[Path, CodeFile]  # by path below the folder from which each is imported

# --- what a scenario holds and names ----------------------------------------------------------------------------------


def by_key(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yields (dotted key, value) of a part, of its values, and of all values within them. key: that of the value."""
    yield key, value
    inner = vars(value) if isinstance(value, Part) else value
    if isinstance(inner, dict | tuple | list):
        for step, item in inner.items() if isinstance(inner, dict) else enumerate(inner):
            yield from by_key(item, f"{key}.{step}" if key else str(step))


def parts_in(part: Part) -> Iterator[Part]:
    """Yields a part, and all parts within it."""
    return (value for _, value in by_key(part) if isinstance(value, Part))


def paths_in(value: Any) -> dict[str, str]:
    """Returns all texts like module:Class in a part or in plain data, each with its module."""
    texts = (text for _, text in by_key(value) if isinstance(text, str))
    return {path[0]: path[1] for text in texts if (path := _PATH.fullmatch(text))}


def own_modules(scenario: Part) -> list[str]:
    """Returns the modules of all classes from outside in a scenario, and of all texts in it like module:Class, sorted.

    Bases of a class count too, if they are parts.
    """
    found = {cls.__module__ for part in parts_in(scenario) for cls in type(part).__mro__ if issubclass(cls, Part)}
    found |= {module for module in paths_in(scenario).values() if module == MAIN or root_of(module)}
    return sorted(module for module in found if module.partition(".")[0] not in OURS)


def named_in(scenario: Part) -> dict[str, Any]:
    """Returns the user's own classes and functions that texts in a scenario name, by these texts."""
    found = {}
    for path, module in paths_in(scenario).items():
        if is_given(path) or module == MAIN or ((root := root_of(module)) and not is_installed(root)):
            try:
                found[path] = import_class(path)
            except WrongClass:  # it is no path at all, or else the check of the scenario has told it
                continue
    return found


def of_main(scenario: Part) -> list[Any]:
    """Returns the classes and functions of a script or notebook that a scenario holds or names."""
    found = [*map(type, parts_in(scenario)), *named_in(scenario).values()]
    return list(dict.fromkeys(one for one in found if getattr(one, "__module__", None) == MAIN))


# --- how it travels ---------------------------------------------------------------------------------------------------


def send_by_value(modules: Iterable[str]) -> None:
    """From now on, cloudpickle sends what is defined in these modules, and in those of the user's own that they
    import, by value. That of a script or notebook it always does."""
    for module in modules:
        for path, root in _files(module, _root_of_own).items():
            name = path.parts[0].removesuffix(".py")
            if name in sys.modules and not is_installed(root):
                cloudpickle.register_pickle_by_value(sys.modules[name])


def pickled(scenario: Part, keep: Callable[[Any], Any] | None) -> bytes:
    """Returns a scenario's values, and the user's own classes and functions that its texts name, as bytes.

    keep: takes the large arrays, which are then not among the bytes.
    """
    modules = own_modules(scenario)
    main = sources_of_main(scenario) if MAIN in modules else {}
    send_by_value([*modules, *(".".join(path.with_suffix("").parts) for path in main)])
    try:
        stream = io.BytesIO()
        _CodePickler(stream, protocol=5, buffer_callback=keep).dump((named_in(scenario), dict(scenario)))
    except Exception as error:
        text = f"what it names in {', '.join(modules)} must be such that cloudpickle can send it to other processes"
        raise TypeError(f"{text}, got {type(error).__name__}: {error}; make such objects within functions") from error
    return stream.getvalue()


class _CodePickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Sends functions with the names of their files, which errors show. cloudpickle leaves them out, so that the bytes
    do not depend on them."""

    def reducer_override(self, obj: Any) -> Any:
        if not isinstance(obj, CodeType):
            return super().reducer_override(obj)
        make, values = self.dispatch_table[CodeType](obj)
        return _code_of, (obj.co_filename, make, values)


def _code_of(file: str, make: Callable[..., CodeType], values: tuple[Any, ...]) -> CodeType:
    return make(*values).replace(co_filename=file)


# --- the files of modules ---------------------------------------------------------------------------------------------


def sources_in(scenario: Part) -> dict[str, Sources]:
    """Returns the files that each of a scenario's `own_modules` is made of; {} for one of which they are not known."""
    return {
        module: sources_of_main(scenario) if module == MAIN else sources_of(module) for module in own_modules(scenario)
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

    return {path: CodeFile(root, _content(root, path)) for path, root in _files(module, root_for).items()}


_SEEN: dict[Path, tuple[Any, bytes]] = {}  # by file, the spec of the module that was imported from it, and its content


def _content(root: Path, path: Path) -> bytes:
    """Returns the content of a module's file. As long as the module is not imported anew, it is that at first sight,
    for this is the code that runs and that other processes get."""
    file = root / path
    names = path.with_suffix("").parts
    module = sys.modules.get(".".join(names[:-1] if names[-1] == "__init__" else names))
    if module is None:
        return file.read_bytes()
    if file not in _SEEN or _SEEN[file][0] is not module.__spec__:
        _SEEN[file] = module.__spec__, file.read_bytes()
    return _SEEN[file][1]


def changed_since_imported(sources: Sources) -> list[str]:
    """Returns the files that are otherwise by now than this process has imported them."""
    files = {source.root / path: source.content for path, source in sources.items() if source.root}
    return [str(file) for file, content in files.items() if not file.is_file() or file.read_bytes() != content]


def sources_of_main(scenario: Part) -> Sources:
    """Returns the source of the script, or of a notebook's cells, that classes and functions of a scenario are in, and
    the files of the user's own modules that it uses."""
    own = [base for one in of_main(scenario) for base in (inspect.getmro(one) if inspect.isclass(one) else (one,))]
    own = [one for one in own if one.__module__ == MAIN]  # a base class may be in another cell
    functions = [value for one in own for value in (one, *vars(one).values()) if inspect.isfunction(value)]
    files = {function.__code__.co_filename for function in functions if function.__module__ == MAIN}  # cells are files
    if not (text := "\n".join(sorted({"".join(linecache.getlines(file)) for file in files}))):
        return {}
    found = {Path(f"{MAIN}.py"): CodeFile(None, text.encode())}
    for module in sorted(_used(text)):
        found |= sources_of(module) if _root_of_own(module.partition(".")[0]) else {}
    return found


def _used(text: str) -> set[str]:
    """Returns the modules of what the text of a script or notebook names, as they are in its variables."""
    try:
        names = {node.id for node in ast.walk(_parsed(text)) if isinstance(node, ast.Name)}
    except SyntaxError:  # such as a cell with a line that is no Python
        return set()
    values = (vars(sys.modules[MAIN]).get(name) for name in names)
    modules = (value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", None) for value in values)
    return {module for module in modules if isinstance(module, str)} - {MAIN}


def root_of(module: str) -> Path | None:
    """Returns the folder from which a module is imported; None if that is not known."""
    try:
        spec = find_spec(module.partition(".")[0])
    except (ImportError, ValueError):  # such as a script, which is not imported
        return None
    if spec and spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations))).parent
    return Path(spec.origin).parent if spec and spec.origin and spec.has_location else None


def is_foreign(name: str) -> bool:
    """Whether a module is raysim's, Python's own or that of an installed package."""
    ours = name in OURS or name in sys.stdlib_module_names
    return ours or ((root := root_of(name)) is not None and is_installed(root))


def _root_of_own(name: str) -> Path | None:
    return None if is_foreign(name) else root_of(name)


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


def _parsed(text: str | bytes) -> ast.Module:
    with _PARSING:
        return ast.parse(text)


def _imports(file: Path, package: list[str]) -> Iterator[str]:
    """Yields the dotted names that a file imports: modules, or things in modules. package: the one that the file is
    in."""
    try:
        tree = _parsed(file.read_bytes())
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
