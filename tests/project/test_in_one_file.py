"""examples/in_one_file.py, which imports nothing of raysim, does what raysim does."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from conftest import ROOT

import raysim

FILE = ROOT / "examples" / "in_one_file.py"
ROUNDS = 60


@pytest.fixture(scope="module")
def one_file() -> ModuleType:
    spec = importlib.util.spec_from_file_location("in_one_file", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["in_one_file"] = module  # dataclasses look for the module there
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("name", "algorithm"), [("fedbuff", "FedBuff"), ("fedavg", "FedAvg")])
def test_it_runs_as_the_quickstart_does(one_file: ModuleType, tmp_path: Path, name: str, algorithm: str) -> None:
    overrides = [f"run.rounds={ROUNDS}"] + ["algorithm=fedavg"] * (name == "fedavg")
    scenario = raysim.load_scenario(ROOT / "scenarios" / "quickstart.yaml", overrides)
    result = raysim.run(scenario, out=tmp_path, inline=True, progress=False)
    table = result.pandas("updates").query("status == 'used'").sort_values(["step", "dispatch"])
    w, used = one_file.run(getattr(one_file, algorithm)(), ROUNDS)
    updates, weights = zip(*used, strict=True)
    for column, field in {
        "dispatch": "serial",
        "client": "client",
        "dispatched_at": "dispatched",
        "arrived_at": "arrives",
        "version": "version",
        "staleness": "staleness",
    }.items():
        assert table[column].tolist() == [getattr(update, field) for update in updates], column
    assert table["weight"].tolist() == pytest.approx(weights, rel=1e-6)
    np.testing.assert_allclose(w.numpy(), result.vectors()["w"], atol=1e-5)


def test_it_is_short_and_stands_alone() -> None:
    text = FILE.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 250
    assert not re.search(r"^\s*(import|from) (raysim|actors|results)", text, re.MULTILINE)


def test_the_lesson_shows_what_is_in_the_file() -> None:
    text = FILE.read_text(encoding="utf-8")
    lesson = (ROOT / "docs" / "lessons" / "in-one-file.md").read_text(encoding="utf-8")
    excerpts = re.findall(r"^```python\n(.*?)^```", lesson, re.DOTALL | re.MULTILINE)
    assert len(excerpts) > 5
    assert [one for one in excerpts[:-1] if one.rstrip() not in text] == []  # the last one uses the others
