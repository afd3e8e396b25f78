"""The modules of a user's own that a scenario names, and the files that they are made of."""

from __future__ import annotations

import ast
import re
import sys
import sysconfig
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from raysim.part import Part

OURS = {"raysim", "actors", "results"}
_PATH = re.compile(r"([A-Za-z_]\w*(?:\.\w+)*):[A-Za-z_][\w.]*")  # module:Class
_INSTALLED = {Path(sysconfig.get_path(kind)) for kind in ("purelib", "platlib", "stdlib")}


def own_modules(part: Part) -> list[str]:
    """Returns the modules of all classes from outside in a part, and of all texts in it like module:Class, sorted."""
    found = set()
    for value in _values(part):
        if isinstance(value, Part):
            classes = (cls for cls in type(value).__mro__ if issubclass(cls, Part))
            found |= {cls.__module__ for cls in classes}
        elif isinstance(value, str) and (path := _PATH.fullmatch(value)):
            found.add(path[1])
    return sorted(module for module in found if module.partition(".")[0] not in OURS)


def _values(value: Any) -> Iterator[Any]:
    """Yields a part, its values, and all values within them."""
    yield value
    inner = vars(value) if isinstance(value, Part) else value
    if isinstance(inner, dict | tuple | list):
        for item in inner.values() if isinstance(inner, dict) else inner:
            yield from _values(item)


def root_of(module: str) -> Path | None:
    """Returns the folder from which a module is imported; None if it is not in a file that can be found."""
    top = module.partition(".")[0]
    if top == "__main__":
        file = getattr(sys.modules[top], "__file__", None)
        return Path(file).absolute().parent if file else None
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations))).parent
    return Path(spec.origin).parent if spec.origin and spec.has_location else None


def is_installed(root: Path) -> bool:
    """Whether a folder from which modules are imported is one of installed packages, or of Python itself."""
    return root in _INSTALLED or root.name in ("site-packages", "dist-packages")


def sources(module: str, root: Path) -> dict[Path, Path]:
    """Returns the files of a module and of the modules below the same root that it imports, by paths below the root."""
    if module == "__main__":
        main = Path(str(sys.modules[module].__file__)).absolute()
        found, todo = {main.relative_to(root): main}, list(_imports(main, ""))
    else:
        found, todo = {}, [module]
    while todo:
        names = todo.pop().split(".")
        if names[0] in OURS:
            continue
        for depth in range(1, len(names) + 1):
            package = root.joinpath(*names[:depth])
            for path, inside in ((package / "__init__.py", depth), (package.with_suffix(".py"), depth - 1)):
                if path.relative_to(root) not in found and path.is_file():
                    found[path.relative_to(root)] = path
                    todo += _imports(path, ".".join(names[:inside]))
    return dict(sorted(found.items()))


def _imports(file: Path, package: str) -> Iterator[str]:
    """Yields the names of what a file imports, which are modules or what modules hold. package: that it is in."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError):  # whoever imports it is told
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            yield from (f"{base}.{alias.name}" for alias in node.names)
