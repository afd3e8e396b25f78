"""What a run depends on beside its scenario, and that a sweep runs again what is out of date."""

import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import command, write
from conftest import ROOT, Raw, digits, forget

import raysim
from raysim.parts.own import import_class
from raysim.runs.continuing import EarlierRuns
from raysim.runs.origin import kept_code
from raysim.scenario.dependencies import depends_on, fingerprint
from results import write_json

ALGORITHM = """
from raysim.algorithms import FedBuff
from {helper} import WEIGHT

class Mine(FedBuff):
    name: str = "mine"

    def weigh(self, arrivals, population):
        return [WEIGHT] * len(arrivals)
"""
MODEL = """
from raysim.models import MLP

class Net(MLP):
    name: str = "net"
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Writes modules of the user's own, whose names no other test has; gives the scenario that names them."""
    folder = tmp_path / "own"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    stem = request.node.originalname
    (folder / f"{stem}_algo.py").write_text(ALGORITHM.format(helper=f"{stem}_helper"))
    (folder / f"{stem}_helper.py").write_text("WEIGHT = 0.5\n")
    (folder / f"{stem}_net.py").write_text(MODEL)
    algorithm, model = {"name": f"{stem}_algo:Mine", "buffer": 3}, {"name": f"{stem}_net:Net", "hidden": [4]}
    raw = digits(algorithm=algorithm, model=model, world__delay="none", run__rounds=2)
    yield raw, folder, stem


def sweep(raw: Raw, out: Path, *words: Any) -> str:
    answer = command("sweep", write(out.parent, raw), "--inline", "--parallel", "1", "--out", out, *words)
    assert answer.exit_code == 0, answer.output
    return answer.stdout


def change_versions(out: Path, version: str) -> None:
    for file in out.rglob("run.json"):
        info = json.loads(file.read_text())
        info["depends_on"]["raysim"] = version
        file.write_text(json.dumps(info))


@pytest.mark.slow
def test_a_sweep_runs_again_what_changed_and_says_why(own: Any, tmp_path: Path) -> None:
    raw, folder, stem = own
    out = tmp_path / "runs"
    assert "1 finished" in sweep(raw, out)
    assert "1 done before" in sweep(raw, out)
    (folder / f"{stem}_helper.py").write_text("WEIGHT = 0.25\n")  # which the algorithm's module imports
    forget(stem)
    said = sweep(raw, out)
    assert f"digits: runs again: module {stem}_algo changed\n" in said
    assert "1 finished" in said
    assert "1 done before" in sweep(raw, out)
    change_versions(out, "0.0.1")
    assert f"digits: runs again: raysim 0.0.1 -> {raysim.__version__}\n" in sweep(raw, out)
    weights = {float(abs(raysim.Result(run).vectors()["w"]).sum()) for run in (out / "digits").iterdir()}
    assert len(weights) == 2


def test_files_of_data_are_known_by_what_they_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by their times; and those of a folder by their names, too."""
    monkeypatch.delenv("RAYSIM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "a").write_text("one")
    first = fingerprint(folder), fingerprint(folder / "a")
    (folder / "a").touch()
    assert (fingerprint(folder), fingerprint(folder / "a")) == first
    (folder / "a").rename(folder / "b")
    assert (fingerprint(folder / "b"), fingerprint(folder / "a")) == (first[1], None)
    assert fingerprint(folder) not in (None, first[0])
    monkeypatch.setattr("raysim.scenario.dependencies.LARGE", 1)
    assert fingerprint(folder / "b") == first[1]
    (kept,) = (tmp_path / "cache" / "raysim" / "fingerprints").iterdir()
    arrays: dict[str, Any] = {kept.name: np.frombuffer(b"remembered", np.uint8)}
    np.savez(kept.with_suffix(".npz"), **arrays)
    kept.with_suffix(".npz").rename(kept)
    assert fingerprint(folder / "b") == "remembered"
    (folder / "b").write_text("other")
    assert fingerprint(folder / "b") not in ("remembered", first[1], None)


@pytest.mark.slow
def test_the_folder_of_a_run_keeps_the_code_and_the_module_is_made_of_it(own: Any, tmp_path: Path) -> None:
    raw, folder, stem = own
    result = raysim.run(raw, out=tmp_path / "runs", inline=True)
    code = {path.name: path.read_text() for path in (result.folder / "code").iterdir()}
    assert set(code) == {f"{stem}_{name}.py" for name in ("algo", "helper", "net")}
    assert code[f"{stem}_net.py"] == MODEL
    before = str(result.module())
    (folder / f"{stem}_net.py").write_text(MODEL.replace("(MLP)", "(int)"))
    elsewhere = f"import raysim; print(raysim.Result({str(result.folder)!r}).module())"
    for place in (folder, tmp_path):  # where the module has changed, and where it is not found
        answer = subprocess.run([sys.executable, "-c", elsewhere], cwd=place, capture_output=True, text=True)
        assert answer.stdout.strip() == before, answer.stderr


def test_runs_are_read_without_their_classes(own: Any, tmp_path: Path) -> None:
    raw, folder, stem = own
    result = raysim.run(raw, out=tmp_path / "runs", inline=True)
    for file in folder.glob("*.py"):
        file.write_text("1 / 0")
    forget(stem)
    again = raysim.Result(result.folder)
    assert len(again.table("steps")) and len(again.vectors()["w"])
    assert command("show", result.folder).exit_code == 0


def test_of_the_code_in_a_folder_only_what_the_model_names_is_imported(own: Any, tmp_path: Path) -> None:
    """With what that imports of the folder, under other names than here. The folder may be a stranger's."""
    raw, folder, stem = own
    net = folder / f"{stem}_net.py"
    net.write_text(f"import json\nfrom {stem}_helper import WEIGHT\n{MODEL}")
    result = raysim.run(raw, out=tmp_path / "runs", inline=True)
    net.write_text(MODEL + "# changed")
    (folder / f"{stem}_helper.py").write_text("WEIGHT = 2\n")
    for name in ("stranger", "numpy", "json"):
        (result.folder / "code" / f"{name}.py").write_text("1 / 0")
    with kept_code(result.folder, result.info):
        assert find_spec("stranger") is None and find_spec(f"{stem}_net").origin == str(net)
        kept = sys.modules[import_class(f"{stem}_net:Net").__module__]
    assert inspect.getfile(kept) == str(result.folder / "code" / f"{stem}_net.py")
    assert vars(kept)["WEIGHT"] == 0.5
    assert sys.modules[import_class(f"{stem}_net:Net").__module__] is not kept
    assert result.module() is not None


def test_the_commit_and_whether_own_files_are_as_committed_are_kept(
    own: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """git runs nothing that the repository names, and no other file is looked at."""
    raw, folder, stem = own
    monkeypatch.chdir(folder)
    scenario = raysim.parse_scenario(raw)
    assert raysim.run(scenario, out=tmp_path / "runs", inline=True).info["git"] is None
    git("init", "-q")
    (folder / ".env").write_text("SECRET=1")
    (folder / ".gitattributes").write_text("* filter=traced diff=traced")
    git("add", ".")
    git("-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "first")
    trap = folder / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\ncat\n")
    trap.chmod(0o755)
    for key in ("core.fsmonitor", "filter.traced.clean", "diff.external", "diff.traced.textconv"):
        git("config", key, str(trap))
    clean = raysim.run(scenario, out=tmp_path / "runs", inline=True)
    assert clean.info["git"] == {"commit": git("rev-parse", "HEAD").strip(), "clean": True}
    (folder / ".env").write_text("SECRET=2")
    (folder / f"{stem}_helper.py").write_text("WEIGHT = 0.25\n")
    forget(stem)
    changed = raysim.run(scenario, out=tmp_path / "runs", inline=True)
    assert changed.info["git"] == {**clean.info["git"], "clean": False}
    assert not (tmp_path / "sprung").exists()


def git(*words: str) -> str:
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


NOTEBOOK = """
import linecache, sys
from pathlib import Path
sys.path[:0] = [{tests!r}, {tests!r} + "/support"]
import conftest, raysim
from raysim.sweep.batch import outcomes_of

def run_cell(number, text):
    name = f"<cell {{number}}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), globals())

CELL = '''
from raysim.world import Delay

class Mine(Delay):
    name: str = "mine"
    unit: str = "rounds"

    def duration(self, stream, client, number, cost):
        return {value}
'''
NEXT = '''
class Next(Mine):
    name: str = "next"

    def twice(self):
        return 2 * self.duration(None, 0, 0, None)
'''
def sweep(made=None):
    world = {{"dispatch": {{"per_round": 2}}, "delay": made or Mine()}}
    scenario = raysim.parse_scenario(conftest.quadratic([1.0, 3.0], "fedavg", world, 3))
    where = {{"inline": True, "address": None, "parallel": None}}
    *said, outcome = [news for _, news in outcomes_of([scenario], ["one"], Path("runs"), (), **where)]
    print(outcome.status, *(news.why for news in said), sep="; ")
    return raysim.Result(outcome.folder)

run_cell(1, CELL.replace("VALUE", "0.0"))
sweep()
result = sweep()
print(result.info["scenario"]["world"]["delay"]["name"], result.info["notes"])
assert CELL.replace("VALUE", "0.0") == (result.folder / "code" / "__main__.py").read_text()
run_cell(2, CELL.replace("VALUE", "float(client)"))
sweep()
run_cell(3, NEXT)
sweep(Next())
run_cell(4, CELL.replace("VALUE", "float(client + 1)"))  # the base's cell, and not that of the class
run_cell(5, NEXT)
sweep(Next())
"""


@pytest.mark.long
def test_a_sweep_of_classes_of_a_notebook(tmp_path: Path) -> None:
    code = NOTEBOOK.format(tests=str(ROOT / "tests"), value="VALUE")
    answer = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert answer.stdout.splitlines() == [
        "finished",
        "done before",
        "__main__:Mine ['Mine is a class of a script or notebook, which cannot be imported elsewhere; put it into a "
        "module']",
        "finished; module __main__ changed",
        "finished",
        "finished; module __main__ changed",
    ], answer.stderr


def test_the_last_run_is_the_one_that_started_last_whatever_its_name(tmp_path: Path) -> None:
    """A case that has been renamed since then sorts after the new one, and would be run again for ever."""
    scenario = raysim.parse_scenario(digits())
    now = depends_on(scenario)
    for name, day, version in (("z", 1, "0.0.1"), ("a", 2, now["raysim"])):
        about = {"run": name, "status": "finished", "scenario_hash": scenario.hash, "started_at": f"2026-11-0{day}"}
        write_json(tmp_path / name, {**about, "depends_on": {**now, "raysim": version}})
    assert EarlierRuns(tmp_path).find(scenario) == tmp_path / "a"
