"""Faults in code of a user's own: where they are told to be."""

import pickle
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from command_line import command, write
from conftest import Raw, digits
from toys import Counting

import raysim
from actors.fault import frames_of
from raysim.observers import Observer

MODULE = """
import numpy as np
from raysim.algorithms import FedAvg
from raysim.data import Partitioner, Source
from raysim.models import ModelPart
from raysim.world import Delay
from torch import nn

class Data(Source):
    def load(self):
        raise KeyError("boom")

class Parts(Partitioner):
    def split(self, split, clients, generator):
        return halves(split)

def halves(split):
    return np.concatenate([split.y, split.y[None]])

class Mean(FedAvg):
    name: str = "mean"
    def weigh(self, arrivals, population):
        return 1 / 0

class Late(Delay):
    name: str = "late"
    unit: str = "rounds"
    def duration(self, stream, client, number, cost):
        raise ValueError("boom")

class Net(nn.Module):
    def forward(self, x):
        return self.missing(x)

class Model(ModelPart):
    name: str = "model"
    def build(self, shape, num_classes):
        net = Net()
        net.layer = nn.Linear(64, num_classes)
        return net

def metric(outputs, labels):
    raise ValueError("boom")
"""

FAULTS = [
    ({"data": {"name": "mistaken:Data", "clients": 6, "partition": "iid"}}, "data", "Data.load", 11),
    ({"data__partition": "mistaken:Parts"}, "data.partition", "halves", 18),
    ({"algorithm": "mistaken:Mean"}, "algorithm", "Mean.weigh", 23),
    ({"world__delay": "mistaken:Late"}, "world.delay", "Late.duration", 29),
    ({"model": "mistaken:Model"}, "model", "Net.forward", 33),
    ({"run__metrics": ["macro_f1", "mistaken:metric"]}, "run.metrics", "metric", 43),
]


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a module whose classes all have a fault."""
    path = tmp_path / "mistaken.py"
    path.write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mistaken", raising=False)
    return path


@pytest.mark.parametrize(("change", "key", "function", "line"), FAULTS)
def test_a_run_ends_with_the_function_and_the_line_of_a_fault(
    change: Raw, key: str, function: str, line: int, faulty: Path, tmp_path: Path
) -> None:
    del key
    raw: Any = digits(**change)
    with pytest.raises(raysim.RunFailed) as failed:
        raysim.run(raw, out=tmp_path / "runs", inline=True)
    assert str(failed.value).endswith(f" - raised in mistaken:{function}, {faulty}:{line}")
    first, second, *_ = failed.value.traceback.splitlines()
    assert (first, second.split(", line")[0]) == ("Traceback (most recent call last):", f'  File "{faulty}"')
    assert "/raysim/" not in failed.value.traceback


@pytest.mark.parametrize(("change", "key", "function", "line"), [FAULTS[place] for place in (0, 1, 4, 5)])
def test_check_says_the_same(change: Raw, key: str, function: str, line: int, faulty: Path, tmp_path: Path) -> None:
    path = write(tmp_path, digits(**change))
    answer = command("check", path, "--data")
    assert answer.stderr.startswith(f"{path}: {key}: must ")
    assert answer.stderr.endswith(f", raised in mistaken:{function}, {faulty}:{line}; run it to see the traceback\n")


@pytest.mark.usefixtures("faulty")
def test_a_dry_run_says_the_same(tmp_path: Path) -> None:
    with pytest.raises(raysim.RunFailed, match=r"the timeline: ValueError: boom - raised in mistaken:Late"):
        raysim.run(digits(world__delay="mistaken:Late"), out=tmp_path / "runs", dry=True)


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("ray_session")
def test_a_fault_on_ray_is_told_alike(faulty: Path, tmp_path: Path) -> None:
    with pytest.raises(raysim.RunFailed) as failed:
        raysim.run(digits(model="mistaken:Model"), out=tmp_path / "runs")
    assert str(failed.value).endswith(f"raised in mistaken:Net.forward, {faulty}:33")


def test_code_sent_by_value_keeps_the_names_of_its_files(faulty: Path) -> None:
    """Errors in other processes name them."""
    sent = pickle.loads(pickle.dumps(raysim.parse_scenario(digits(world__delay="mistaken:Late"))))
    assert type(sent.world.delay).duration.__code__.co_filename == str(faulty)


ENDS = (SystemExit(0), GeneratorExit(), StopIteration(), BaseException("b"), RecursionError("deep"))


@pytest.mark.parametrize("end", ENDS, ids=lambda end: type(end).__name__)
def test_nothing_that_own_code_raises_passes_for_an_end(end: BaseException, tmp_path: Path) -> None:
    """It fails a run, is refused before one, or is told of an observer, whichever method raises it."""
    for method in ("weigh", "update", "step", "problems"):
        raising = type("Raising", (Counting,), {"__module__": __name__, method: _raising(end)})
        raw = digits(algorithm=raising(), run__rounds=2)
        if method == "problems":
            with pytest.raises(raysim.ScenarioError, match="neither raise nor end the process, but"):
                raysim.parse_scenario(raw)
            continue
        with pytest.raises(raysim.RunFailed, match=type(end).__name__):
            raysim.run(raw, inline=True, out=tmp_path / method)
        (folder,) = (tmp_path / method).iterdir()
        assert raysim.Result(folder).info["status"] == "failed"
    for method in ("begin", "progress", "end"):
        observer = type("Seeing", (Observer,), {"__module__": __name__, method: _raising(end)})()
        result = raysim.run(digits(run__rounds=2), inline=True, out=tmp_path / method, observers=[observer])
        assert result.info["status"] == "finished"


def test_packages_that_are_installed_elsewhere_are_no_code_of_the_user_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by `pip install --target`, into a folder on PYTHONPATH."""
    (tmp_path / "elsewhere-1.0.dist-info").mkdir()
    (tmp_path / "elsewhere.py").write_text("def fail():\n    raise KeyError(1)\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(KeyError) as caught:
        import_module("elsewhere").fail()
    assert len(frames_of(caught.value)) == 1  # this test


class HasNoText(Exception):
    def __str__(self) -> str:
        raise ValueError("none")


def test_an_error_without_a_text_is_a_failure(tmp_path: Path) -> None:
    ending = type("Ending", (Counting,), {"__module__": __name__, "update": _raising(HasNoText())})
    with pytest.raises(raysim.RunFailed, match=r"HasNoText: \(its text cannot be made: ValueError\)"):
        raysim.run(digits(algorithm=ending(), run__rounds=2), inline=True, out=tmp_path)
    (folder,) = tmp_path.iterdir()
    assert raysim.Result(folder).info["status"] == "failed"


def _raising(end: BaseException) -> Any:
    def method(*args: Any) -> Any:
        raise end

    return method
