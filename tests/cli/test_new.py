"""`raysim new`: what it writes works as it is."""

import subprocess
import sys
from pathlib import Path

import pytest
from command_line import command

from raysim.cli.new import Start
from results import CannotWrite


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize("what", Start)
def test_what_is_written_keeps_the_laws_and_its_scenario_runs(what: Start, tmp_path: Path) -> None:
    name = f"my_{what.value.replace('-', '_')}"
    answer = command("new", what.value, name)
    assert (answer.exit_code, answer.stderr) == (0, "")
    files = [f"{name}.py", f"test_{name}.py", f"{name}.yaml"]
    assert answer.stdout.splitlines()[0] == ", ".join(files)
    written = [(tmp_path / file).read_text() for file in files]
    assert not any("emplate" in text for text in written)
    lines = answer.stdout.splitlines()[2:4]
    for line in lines:
        words = line.split()
        done = command(*words[1:], *(["--no-ray"] if words[1] == "test" else []))
        assert done.exit_code == 0, done.output


def test_scenarios_name_the_schema_beside_them(tmp_path: Path) -> None:
    (tmp_path / "scenario.schema.json").write_text(command("schema").stdout)
    command("new", "delay", "of_schema")
    text = (tmp_path / "of_schema.yaml").read_text()
    assert text.startswith("# yaml-language-server: $schema=scenario.schema.json\n")
    assert command("check", tmp_path / "of_schema.yaml").exit_code == 0


@pytest.mark.slow
def test_its_test_passes() -> None:
    command("new", "delay", "two_speeds")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "test_two_speeds.py"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("mine")
    answer = command("new", "model", "mine")
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert "must not overwrite files, but mine.yaml is here already" in answer.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.yaml"]


def test_what_cannot_be_written_is_told() -> None:
    name = "a" * 300
    with pytest.raises(CannotWrite, match="File name too long"):
        command("new", "model", name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "my-model",
            "must have a name for a Python file, of lower-case letters, digits and underscores, such as my_class",
        ),
        ("class", "must have a name for a Python file"),
        ("", "such as my_class, got ''"),
        ("json", "must be a new name, but Python has a module 'json' already"),
    ],
)
def test_a_name_that_python_cannot_import_is_refused(name: str, expected: str) -> None:
    answer = command("new", "model", name)
    assert answer.exit_code == 2
    assert expected in answer.stderr
