"""What the pages of the documentation say is run: commands, scenario files and Python, page by page, from the top.

A block with a title is a file that later blocks use. `raysim run` and `raysim sweep` get `--inline`, and runs are made
short. A comment before a block says that it fails, or why it is not run. Text below a block that fails is in what the
block prints.
"""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from glob import glob
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ruamel.yaml import YAML
from typer.testing import CliRunner

import raysim
from raysim.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md"))
ROUNDS = 5  # that runs have at most
BLOCK = re.compile(r'(?:<!-- (.*?) -->\n)?^```(\w+)(?: title="(.*?)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
SNIPPET = re.compile(r'^--8<-- "(.+)"$', re.MULTILINE)

pytestmark = [pytest.mark.docs, pytest.mark.usefixtures("here")]


class Block(NamedTuple):
    """A fenced block of a page."""

    note: str  # of the comment before it, such as "fails"
    language: str
    title: str
    text: str


def blocks(page: str) -> list[Block]:
    text = (ROOT / "docs" / page).read_text()
    found = [Block(*(part or "" for part in parts)) for parts in BLOCK.findall(text)]
    return [b._replace(text=SNIPPET.sub(lambda file: (ROOT / file[1]).read_text(), b.text)) for b in found]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with scenarios and traces that pages name, made short. Imports from it are forgotten afterwards."""
    (tmp_path / "scenarios" / "algorithms").mkdir(parents=True)
    shipped = ROOT / "scenarios"
    shutil.copytree(ROOT / "examples" / "traces", tmp_path / "examples" / "traces")
    for path in (*shipped.glob("*.yaml"), *(shipped / "algorithms").glob("*.yaml")):
        (tmp_path / path.relative_to(ROOT)).write_text(_short(path.read_text()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def _short(text: str) -> str:
    text = re.sub(r"(until: \{virtual_time: )[46]00", r"\g<1>30", text)
    text = re.sub(r"(bytes[:=] ?)(2\.0e\+7|1e7)", r"\g<1>1.0e+6", text)
    return re.sub(r"(rounds[:=] ?)(\d+)", lambda found: found[1] + str(min(int(found[2]), ROUNDS)), text)


def test_the_pages_are_found() -> None:
    assert len(PAGES) > 15
    assert sum(len(blocks(page)) for page in PAGES) > 60


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)])
def test_what_a_page_says_works(page: str, place: Path) -> None:
    names: dict[str, Any] = {"__name__": f"page_{page}"}
    printed: str | None = None  # by the last block, if it failed as the page says
    for block in blocks(page):
        if printed is not None and block.language == "text":
            lines = [" ".join(line.split()) for line in block.text.replace("\n...", "").splitlines()]
            assert all(line in printed for line in lines), (block.text, printed)
        printed = None
        if block.note.startswith("not run: "):
            continue
        assert block.note in ("", "fails"), block.note
        if block.language == "sh":
            for command in block.text.replace("\\\n", " ").splitlines():
                output = _run(command, fails=block.note == "fails")
                printed = " ".join(output.split()) if block.note == "fails" else None
        elif block.language in ("python", "yaml") and block.title:
            (place / block.title).write_text(_short(block.text))
            assert block.language == "yaml" or compile(block.text, block.title, "exec")
        elif block.language == "python":
            exec(compile(_short(block.text), f"{page}, a block of Python", "exec"), names)
        elif block.language == "yaml":
            _check(block.text)
        else:
            assert block.language == "text", f"{page}: a block is of {block.language}, which nothing checks"


def _run(command: str, *, fails: bool) -> str:
    """Runs a command, and returns what it printed."""
    program, *words = shlex.split(command)
    if program == "python":
        return subprocess.run([sys.executable, *words], check=True, capture_output=True, text=True).stdout
    assert program == "raysim", f"{command}: only raysim and python are run; say before the block why it is not"
    words = [_short(name) for word in words for name in sorted(glob(word)) or [word]]  # as a shell does
    if words[0] in ("run", "sweep") and not {"--inline", "--dry"} & set(words):
        words.append("--inline")
    answer = CliRunner().invoke(app, words, catch_exceptions=False)
    assert (answer.exit_code != 0) == fails, f"{command}\n{answer.output}"
    return answer.output


def _check(text: str) -> None:
    """A whole scenario, or blocks that replace those of the quickstart."""
    base = YAML(typ="safe").load(Path("scenarios/quickstart.yaml").read_text())
    found = {**base, **(YAML(typ="safe").load(text) or {})}
    if "sweep" in found:
        YAML().dump(found, Path("sweep.yaml"))
        raysim.load_sweep("sweep.yaml")
    else:
        raysim.parse_scenario(found)
