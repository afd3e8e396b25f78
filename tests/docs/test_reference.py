"""The reference pages say something of every key, part, algorithm, table and column."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from raysim.algorithms import ALGORITHMS
from results import TABLES

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted((DOCS / "reference").glob("*.md"))


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
    return {path.stem: hooks.fill(path.read_text()) for path in PAGES}


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
    rows = [line for page in pages.values() for line in page.splitlines() if re.match(r"\| `[a-z_.]+` \|", line)]
    assert len(rows) > 300
    assert all(re.search(r"\| [^|]*\S[^|]* \|$", row.replace("\\|", "")) for row in rows)


def test_a_key_is_told_with_its_path_type_unit_and_default(pages: dict[str, str]) -> None:
    assert re.search(r"\| `resources.wait_s` \| number ≥ 0 \| s \| `0.0` \| \w", pages["scenario"])
    assert re.search(r"\| `world.delay.sigma` \| number ≥ 0 \| `unit` \| required \| \w", pages["world"])
    assert re.search(r"\| `algorithm.buffer` \| whole number ≥ 1 \|  \| `10` \| \w", pages["algorithms"])


@pytest.mark.parametrize("table", TABLES)
def test_every_column_is_on_the_page_of_tables(pages: dict[str, str], table: str) -> None:
    section = pages["tables"].split(f"## `{table}` ")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == set(TABLES[table].names)


def test_algorithms_are_told_with_source_and_code(pages: dict[str, str]) -> None:
    sections = re.split(r"\n### ", pages["algorithms"])[1:]
    algorithms = [section for section in sections if "Name in scenario files" in section]
    assert len(algorithms) == len(ALGORITHMS)
    for section in algorithms:
        assert re.search(r"\*\*Source\.\*\* .*(\d{4}|arXiv)", section, re.DOTALL), section[:200]
        assert "    class " in section
    without = [section for section in algorithms if "**Differences.**" not in section]
    assert len(without) == 1  # the one that is of no paper


def test_a_missing_description_fails(hooks: ModuleType) -> None:
    bare = {"properties": {"speed": {"type": "number"}}}
    with pytest.raises(Exception, match=r"world.speed: has no description; add a string below the field"):
        hooks.blocks.table(bare, "world")
