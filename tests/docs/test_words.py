"""Pages, help, messages and docstrings are in the field's words: `banned.txt` lists what they must not have."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from conftest import ROOT

FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
BANNED = [
    (section, *line.rsplit(" => ", 1))
    for section, body in re.findall(
        r"^\[(\w+)\]\n((?:.+\n)+)", (Path(__file__).parent / "banned.txt").read_text(), re.M
    )
    for line in body.splitlines()
]


@cache
def texts(section: str) -> list[tuple[str, str]]:
    """The prose of pages without blocks of code and, everywhere, the texts in the code, each with its place."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    found = [(str(page.relative_to(ROOT)), " ".join(FENCE.sub("", page.read_text()).split())) for page in pages]
    return [*found, *_in_code()] if section == "everywhere" else found


def _in_code() -> Iterator[tuple[str, str]]:
    for path in (path for package in ("raysim", "actors", "results") for path in (ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
                yield f"{path.relative_to(ROOT)}:{node.lineno}", " ".join(node.value.split())


@pytest.mark.parametrize(("section", "phrase", "instead"), BANNED, ids=[phrase for _, phrase, _ in BANNED])
def test_no_text_has_a_banned_phrase(section: str, phrase: str, instead: str) -> None:
    hits = [
        f"{at}: ...{text[max(0, m.start() - 40) : m.end() + 40]}..."
        for at, text in texts(section)
        for m in re.finditer(phrase, text)
    ]
    assert not hits, f"write instead: {instead}"


def test_the_list_is_read() -> None:
    assert {section for section, *_ in BANNED} == {"everywhere", "pages"}
    assert re.search(BANNED[0][1], "a part of one's own")
