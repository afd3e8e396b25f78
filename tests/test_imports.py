"""Imports flow one way, and what need not be loaded is not loaded."""

import ast
import importlib
import subprocess
import sys
from collections import Counter
from collections.abc import Container, Iterator
from functools import cache
from pathlib import Path

import cloudpickle
import networkx
import pytest
from conftest import ROOT

from raysim.algorithms import ALGORITHMS, Central, Peer
from raysim.parts import lazy
from raysim.parts.own import path_of
from raysim.parts.part import Part, names_of, parts_of
from raysim.scenario import Scenario

MAY_IMPORT = {"raysim": {"raysim", "actors", "results"}, "actors": {"actors"}, "results": {"results"}}
FILES = [file for package in MAY_IMPORT for file in sorted((ROOT / package).rglob("*.py"))]
HEAVY = {"torch", "torchvision", "timm", "ray", "pandas", "sklearn", "scipy", "networkx", "matplotlib", "jinja2", "PIL"}
NAMES = ["session", "workforce", "actors", "cluster", "connection", "crew", "placement"]
USES_RAY = {ROOT / "actors" / f"{name}.py" for name in NAMES}
PACKAGES = ["raysim", "raysim.algorithms", "raysim.data", "raysim.local", "raysim.models", "raysim.world"]
PACKAGES += ["actors", "results", "results.report"]
TESTS = sorted((ROOT / "tests").rglob("*.py"))


@cache
def imports(file: Path) -> set[tuple[str, str]]:
    """All imports in a file, also those within functions: a module, and what is taken from it, or nothing."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {(alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found |= {(node.module or "", alias.name) for alias in node.names}
    return found


def test_imports_flow_one_way() -> None:
    for file in FILES:
        found = {module.partition(".")[0] for module, _ in imports(file)}
        assert found & set(MAY_IMPORT) <= MAY_IMPORT[file.relative_to(ROOT).parts[0]], file
        assert not found & {"tests", "toys", "conftest", "benchmarks"}, file
        assert "ray" not in found or file in USES_RAY, file


@cache
def imported_files() -> dict[Path, set[Path]]:
    """For each file, those of raysim that it imports anywhere, for typing too. A package is its `__init__.py`."""
    by_module = {module_name(file): file for file in FILES}
    return {
        file: {by_module[name] for pair in imports(file) if (name := found_module(pair, by_module))} - {file}
        for file in FILES
    }


def module_name(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def found_module(pair: tuple[str, str], modules: Container[str]) -> str | None:
    """The module that `from module import name` takes: module.name if that is one."""
    return next((name for name in (".".join(pair), pair[0]) if name in modules), None)


def test_files_import_each_other_in_pairs_at_most() -> None:
    """A circle of imports can only be read as a whole, and a part of it cannot be used without the rest."""
    circles = networkx.strongly_connected_components(networkx.DiGraph(imported_files()))
    large = [sorted(map(module_name, circle)) for circle in circles if len(circle) > 2]
    assert large == []


def test_a_reader_meets_few_rooms() -> None:
    """A room is a package, with the packages in it, or a module that lies beside the packages of raysim."""
    rooms = {module_name(file).removeprefix("raysim.").partition(".")[0] for file in FILES}
    assert len(rooms - {"raysim", "__main__"}) <= 27, sorted(rooms)


def test_every_package_is_installed() -> None:
    """Setuptools takes folders with an `__init__.py` only."""
    assert all((file.parent / "__init__.py").exists() for file in FILES)


def test_no_two_classes_have_one_name() -> None:
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in FILES)
    names = Counter(node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []


def loaded(code: str) -> set[str]:
    """The heavy libraries that are there after the code, in a process of its own."""
    code = f"import sys\n{code}\nprint(*({HEAVY!r} & set(sys.modules)))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_importing_raysim_and_its_command_line_loads_nothing_heavy() -> None:
    assert loaded("import raysim, raysim.cli.app") == set()


def test_what_the_scheduler_runs_loads_no_torch() -> None:
    names = [file.stem for file in (ROOT / "raysim" / "algorithms").glob("*.py") if file.stem != "__init__"]
    modules = [f"raysim.algorithms.{name}" for name in names]
    modules += [
        "raysim.scenario",
        "raysim.runs.execution",
        "raysim.runs.run",
        "raysim.workers.requests",
        "raysim.workers.peer_requests",
    ]
    assert loaded(f"import {', '.join(modules)}") == set()


def test_checking_a_scenario_loads_nothing_heavy() -> None:
    path = ROOT / "scenarios" / "quickstart.yaml"
    assert loaded(f"import raysim\nraysim.load_scenario({str(path)!r}).hash") == set()


def test_libraries_that_are_loaded_late_travel_with_code_that_uses_them() -> None:
    """A user's own copy of a file of raysim takes them from where raysim does, and is sent by value."""
    for one in (lazy.F, lazy.networkx, lazy.nn, lazy.torch):
        there = cloudpickle.loads(cloudpickle.dumps(one))
        assert there.__name__ == one.__name__


def all_parts(of: type[Part]) -> set[type[Part]]:
    """Everything that a scenario file can hold below a part."""
    found = {of}
    for field in of.model_fields.values():
        for part in parts_of(field.rebuild_annotation()):
            found |= all_parts(part)
    return found


def test_every_part_says_in_its_first_line_what_it_is() -> None:
    for part in all_parts(Scenario):
        assert part.__doc__ and part.__doc__.splitlines()[0].strip().endswith("."), part
        assert part.__doc__ not in [base.__doc__ for base in part.__mro__[1:] if path_of(base) != path_of(part)], part


def test_every_algorithm_is_registered_under_the_name_of_its_file() -> None:
    for file in (ROOT / "raysim" / "algorithms").glob("[!_]*.py"):
        importlib.import_module(f"raysim.algorithms.{file.stem}")
    named = {part for family in (Central, Peer) for part in below(family) if names_of(part)}
    assert {part for part in named if part.__module__.startswith("raysim.algorithms.")} == set(ALGORITHMS)
    for part in ALGORITHMS:
        file = part.__module__.rpartition(".")[2]
        assert names_of(part)[0] == file
        assert part.__name__.lower() == file.replace("_", "")


def below(base: type[Part]) -> Iterator[type[Part]]:
    """All subclasses."""
    for part in base.__subclasses__():
        yield part
        yield from below(part)


@pytest.mark.parametrize("package", PACKAGES)
def test_what_others_take_from_a_package_is_what_it_exports(package: str) -> None:
    module = importlib.import_module(package)
    exported = getattr(module, "__all__", vars(module))
    assert all(hasattr(module, name) for name in exported)
    taken = {name for file in FILES + TESTS for source, name in imports(file) if name and source == package}
    submodules = {path.stem for path in Path(str(module.__file__)).parent.glob("*.py")}
    assert taken - submodules <= set(exported)
