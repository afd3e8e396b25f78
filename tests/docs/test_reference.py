"""The reference pages say something of every key, part, algorithm, table and column."""

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import raysim
from raysim.algorithms import ALGORITHMS
from results import TABLES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*(DOCS / "reference").glob("*.md"), DOCS / "algorithms" / "rules.md"])


@pytest.fixture(scope="module")
def hooks() -> Any:
    """docs/hooks.py, as MkDocs loads it."""
    sys.path.insert(0, str(DOCS))
    try:
        spec = importlib.util.spec_from_file_location("docs_hooks", DOCS / "hooks.py")
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(DOCS))
    return module


@pytest.fixture(scope="module")
def pages(hooks: ModuleType) -> dict[str, str]:
    """The reference pages, with what is generated in them."""
    hooks.on_pre_build()
    by_hand = {path.stem: hooks.fill(path.read_text()) for path in PAGES}
    return by_hand | {Path(place).stem: text for place, text in hooks.algorithms.pages().items()}


def test_every_part_is_on_a_page(hooks: ModuleType, pages: dict[str, str]) -> None:
    hooks.on_post_build()
    assert not any("{{ generate" in page for page in pages.values())


def test_a_part_that_is_on_no_page_fails_the_build(hooks: ModuleType) -> None:
    hooks.on_pre_build()
    hooks.fill((DOCS / "reference" / "world.md").read_text())
    with pytest.raises(RuntimeError, match=r"no page describes .*\bDigits\b.*; add a line"):
        hooks.on_post_build()


def test_no_page_and_no_heading_is_there_twice(pages: dict[str, str]) -> None:
    listed = re.findall(r": (\S+\.md)$", (DOCS.parent / "mkdocs.yml").read_text(), re.MULTILINE)
    anchors = [(page, anchor) for page, text in pages.items() for anchor in re.findall(r"\{ #(\S+) \}", text)]
    assert len(listed) > 20 and len(anchors) > 100
    for found in (listed, anchors):
        assert len(found) == len(set(found))


def test_every_row_of_a_table_has_a_meaning(pages: dict[str, str]) -> None:
    rows = [line for line in pages["tables"].splitlines() if re.match(r"\| `[a-z_.]+` \|", line)]
    assert len(rows) > 80
    assert all(re.search(r"\| [^|]*\S[^|]* \|$", row.replace("\\|", "")) for row in rows)


def test_every_key_has_a_meaning(pages: dict[str, str]) -> None:
    keys = [found for page in pages.values() for found in re.findall(r"^`[a-z_.]+` <.*\n(.*)", page, re.MULTILINE)]
    assert len(keys) > 300
    assert all(re.match(r":   \S", meaning) for meaning in keys)


def test_a_key_is_told_with_its_path_type_unit_and_default(pages: dict[str, str]) -> None:
    assert re.search(r"^`resources.wait_s` <.*>number ≥ 0 · s · default `0.0`<", pages["scenario"], re.MULTILINE)
    assert re.search(r"^`world.delay.sigma` <.*>number ≥ 0 · `unit` · required<", pages["world"], re.MULTILINE)
    assert re.search(r"^`algorithm.buffer` <.*>whole number ≥ 1 · default `10`<", pages["fedbuff"], re.MULTILINE)


@pytest.mark.parametrize("table", TABLES)
def test_every_column_is_on_the_page_of_tables(pages: dict[str, str], table: str) -> None:
    section = pages["tables"].split(f"## `{table}` ")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == set(TABLES[table].names)


def test_algorithms_are_told_with_equations_source_command_curve_and_code(hooks: ModuleType) -> None:
    found = hooks.algorithms.pages()
    assert len(found) == len(ALGORITHMS)
    for page in found.values():
        assert re.search(r"^\$\$.*\$\$$", page, re.MULTILINE), page[:200]
        assert re.search(r"^## Source\n\n(.|\n)*?(\d{4}|arXiv)", page, re.MULTILINE), page[:200]
        assert "--case" in page and "<polyline" in page and "    class " in page
    without = [page for page in found.values() if "## Differences" not in page]
    assert len(without) == 1  # the one that is of no paper
    index = hooks.algorithms.index()
    assert all(f"]({Path(place).name})" in index for place in found)


def test_curves_are_of_the_cases_that_pages_name(hooks: ModuleType) -> None:
    curves = json.loads(hooks.algorithms.CURVES.read_text())
    for group in hooks.algorithms.groups():
        plan = raysim.load_sweep(ROOT / "scenarios" / "algorithms" / f"{group.name}.yaml")
        hashes = {scenario.name.removeprefix(f"{plan.name}-"): scenario.hash for scenario in plan.scenarios()}
        kept = {case: curve["scenario"] for case, curve in curves[group.name].items()}
        changed = " ".join(sorted(case for case in kept.keys() | hashes if kept.get(case) != hashes.get(case)))
        assert not changed, f"make their curves anew: python docs/curves.py {changed}"
        assert set(group.equations) <= set(hashes)


def test_equations_become_mathml_and_unknown_commands_fail(hooks: ModuleType) -> None:
    pytest.importorskip("latex2mathml")
    made = hooks.equations(r'<p><span class="arithmatex">\(\lVert x \rVert &lt; 1\)</span></p>')
    assert made.startswith("<p><math") and made.count('stretchy="false">&#x02016;') == 2
    assert "<mo>&lt;</mo>" in made.replace("&#x0003C;", "&lt;")
    with pytest.raises(ValueError, match=r"must have commands that latex2mathml knows, got .*nonsense"):
        hooks.equations(r'<div class="arithmatex">\[\nonsense\]</div>')


def test_figures_stand_in_pages_in_their_colours(hooks: ModuleType) -> None:
    page = hooks.images.inlined('<p><img alt="A drawing" src="../images/virtual-time.svg" /></p>')
    assert page.startswith("<p><svg") and "var(--c0)" in page and "<style" not in page
    used = {
        name
        for path in (DOCS / "images").glob("*.svg")
        for name in re.findall(r"var\(--(\w+)\)", _inlined(hooks, path))
    }
    assert used <= set(re.findall(r"--(\w+):", hooks.images.colours())) | {"font"}


def _inlined(hooks: ModuleType, path: Path) -> str:
    found: str = hooks.images.inlined(f'<img alt="" src="images/{path.name}" />')
    return found


def test_a_missing_description_fails(hooks: ModuleType) -> None:
    bare = {"properties": {"speed": {"type": "number"}}}
    with pytest.raises(Exception, match=r"world.speed: has no description; add a string below the field"):
        hooks.blocks.table(bare, "world")


def test_the_reference_has_all_that_a_task_is_said_to_offer() -> None:
    griffe = pytest.importorskip("griffe")
    members = griffe.load("raysim.local.task", search_paths=[str(ROOT)])["Task"].all_members
    named = set(re.findall(r"`task\.(\w+)", (DOCS / "own" / "task.md").read_text().partition("\n\nEach number")[0]))
    assert len(named) > 15
    assert named - members.keys() == set()
