"""What the pages of the documentation say is run: commands, scenario files and Python, page by page, from the top.

A block with a title is a file that later blocks use. `raysim run` and `raysim sweep` get `--inline`, and runs are made
short. A comment before a block says that it fails, or why it is not run. Commands in sentences are run, too, if they
name a file or folder. Text below a block that fails is in what the block prints. Below one that does not fail, its
words are, unless a comment says that it is of whole runs, because numbers of short ones differ. `python
tests/docs/test_pages.py PAGE` runs a page as it is, in an empty folder with `scenarios/`, and writes its numbers anew.
"""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
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
WHOLE = "of whole runs"  # said before a text that short runs do not print
PROSE = re.compile(r"(?<!`)`(raysim [a-z][^`A-Z>:]*[/.][^`A-Z>:]*)`")
EITHER = re.compile(f"{BLOCK.pattern}|{PROSE.pattern}", re.DOTALL | re.MULTILINE)
SNIPPET = re.compile(r'^--8<-- "(.+)"$', re.MULTILINE)

pytestmark = [
    pytest.mark.docs,
    pytest.mark.usefixtures("here"),
    # peft reads an attribute of models that transformers has renamed.
    pytest.mark.filterwarnings("ignore::FutureWarning:transformers.modeling_utils"),
]


class Block(NamedTuple):
    """A fenced block of a page."""

    note: str  # of the comment before it, such as "fails"
    language: str
    title: str
    text: str


def blocks(page: str) -> list[Block]:
    text = (ROOT / "docs" / page).read_text()
    parts = (found.groups() for found in EITHER.finditer(text))
    found = [
        Block("", "sh", "", " ".join(said.split())) if said else Block(*(b or "" for b in of)) for *of, said in parts
    ]
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
    text = re.sub(r"(bytes[:=] ?)(2\.0e\+7|1e7|[12]0MB)", r"\g<1>1.0e+6", text)
    return re.sub(r"(rounds[:=] ?)(\d+)", lambda found: found[1] + str(min(int(found[2]), ROUNDS)), text)


def test_the_pages_are_found() -> None:
    assert len(PAGES) > 15
    assert sum(len(blocks(page)) for page in PAGES) > 60


def test_readme_shows_what_the_lessons_show() -> None:
    printed = [block for block in (ROOT / "README.md").read_text().split("```")[1::2] if block.startswith("\n")]
    lessons = "".join((ROOT / "docs/lessons" / name).read_text() for name in ("first-run.md", "own-algorithm.md"))
    assert len(printed) >= 2
    shown = [line for block in printed for line in block.splitlines() if not line.startswith("results in")]
    assert not [line for line in shown if line not in lessons]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)])
def test_what_a_page_says_works(page: str, place: Path) -> None:
    names: dict[str, Any] = {"__name__": f"page_{page}"}
    printed, fails = "", False  # by the last block, and whether it failed, as the page says
    for block in blocks(page):
        if block.language == "text" and fails:
            lines = [" ".join(line.split()) for line in block.text.replace("\n...", "").splitlines()]
            assert all(line in " ".join(printed.split()) for line in lines), (block.text, printed)
        elif block.language == "text" and printed:
            assert block.note == WHOLE or not {*words(block.text)} - {*words(printed)}, (block.text, printed)
            continue  # a block of several commands may have several texts
        printed, fails = "", block.note == "fails"
        if block.note.startswith("not run: "):
            continue
        assert block.note in ("", "fails"), block.note
        if block.language == "sh":
            for command in block.text.replace("\\\n", " ").splitlines():
                printed += _run(command, fails=fails)
        elif block.language in ("python", "yaml") and block.title:
            (place / block.title).write_text(_short(block.text))
            assert block.language == "yaml" or compile(block.text, block.title, "exec")
        elif block.language == "python":
            exec(compile(_short(block.text), f"{page}, a block of Python", "exec"), names)
        elif block.language == "yaml":
            _check(block.text)
        else:
            assert block.language == "text", f"{page}: a block is of {block.language}, which nothing checks"


def words(text: str) -> tuple[str, ...]:
    """What output has beside numbers, and what stands or falls with them, such as marks."""
    of_numbers = r"\d|^of$|^reached|:$"  # labels with a number, too
    return tuple(word for word in text.split() if re.search("[a-z]", word) and not re.search(of_numbers, word))


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


def shape(line: str) -> str:
    """A line of output without its numbers, marks and spaces."""
    return re.sub(r"[†*\s]|\(#.*?\)", "", re.sub(r"[\d.]*\d", "#", line))


def remade(page: str, printed_by: Callable[[str], str]) -> str:
    """Returns a page with the numbers that its commands print. printed_by: runs a block of commands."""
    text, printed = (ROOT / "docs" / page).read_text(), ""

    def again(found: re.Match[str]) -> str:
        nonlocal printed
        note, language, title, content, said = found.groups()
        if language == "text" and note in (None, WHOLE):
            fresh: dict[str, list[str]] = {}
            for line in printed.splitlines():
                fresh.setdefault(shape(line), []).append(line)
            lines = [(fresh.get(shape(line)) or [line]).pop(0) for line in content.splitlines()]
            return found[0].replace(content, "\n".join([*lines, ""]))
        if title:
            Path(title).write_text(SNIPPET.sub(lambda file: (ROOT / file[1]).read_text(), content))
        elif (said or language == "sh") and not note:
            printed = printed_by(said or content)
        return found[0]

    return EITHER.sub(again, text)


if __name__ == "__main__":

    def run(script: str) -> str:
        return subprocess.run(["bash", "-ec", script], check=True, capture_output=True, text=True).stdout

    (ROOT / "docs" / sys.argv[1]).write_text(remade(sys.argv[1], run))
