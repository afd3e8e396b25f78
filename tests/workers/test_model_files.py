"""Files of models come to the nodes that lack them, or have others, and are kept there."""

from pathlib import Path
from typing import Any

import pytest
from conftest import digits

from raysim.models import Module
from raysim.scenario import Scenario, parse_scenario
from raysim.workers import workshop
from raysim.workers.workshop import with_files


class Loader:
    """A loader on another node, whose home folder is another one."""

    def __init__(self, home: Path, patch: pytest.MonkeyPatch) -> None:
        self._home, self._patch = home, patch
        self.is_here = False
        self.asked: list[str] = []

    def ask(self, query: Any) -> Any:
        self.asked.append(query.name)
        with self._patch.context() as there:
            there.setenv("HOME", str(self._home))
            return query.ask(object())


@pytest.fixture
def loader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Loader:
    monkeypatch.setenv("HOME", str(tmp_path / "here"))
    monkeypatch.setenv("RAYSIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(workshop, "PART", 4)  # bytes
    return Loader(tmp_path / "there", monkeypatch)


def write(home: Path, **files: bytes) -> None:
    (home / "base" / "sub").mkdir(parents=True)
    for name, content in files.items():
        (home / "base" / name.replace("_", "/")).write_bytes(content)


def of(path: str) -> Scenario:
    return parse_scenario(digits(model=Module(module="torch.nn:Identity", weights=path)))


def path_in(scenario: Scenario) -> Path:
    model: Any = scenario.model
    return Path(model.weights)


def test_a_folder_that_is_missing_or_another_is_brought_once(loader: Loader, tmp_path: Path) -> None:
    write(tmp_path / "there", config=b"{}", sub_weights=b"0123456789")
    scenario = of("~/base")
    for _ in range(2):
        came = path_in(with_files(scenario, loader))
        assert came.is_relative_to(tmp_path / "cache") and came.name == "base"
        assert (came / "sub" / "weights").read_bytes() == b"0123456789"
    assert loader.asked.count("read files") == 1 + 3
    write(tmp_path / "here", config=b"{}", sub_weights=b"another")
    assert path_in(with_files(scenario, loader)) == came
    (tmp_path / "here" / "base" / "sub" / "weights").write_bytes(b"0123456789")
    assert with_files(scenario, loader) == scenario


def test_nothing_is_brought_on_the_node_of_the_loader_or_of_what_nobody_has(loader: Loader, tmp_path: Path) -> None:
    scenario = of("~/base")
    assert with_files(scenario, loader) == scenario  # no node has it
    loader.is_here = True
    write(tmp_path / "there", config=b"{}")
    assert with_files(scenario, loader) == with_files(scenario, None) == scenario
    assert loader.asked == ["find files"]


def test_a_file_of_weights_is_brought_with_its_name(loader: Loader, tmp_path: Path) -> None:
    write(tmp_path / "there", w=b"0123")
    (tmp_path / "there" / "base" / "w").rename(tmp_path / "there" / "w.pt")
    came = path_in(with_files(of("~/w.pt"), loader))
    assert came.name == "w.pt" and came.read_bytes() == b"0123"
