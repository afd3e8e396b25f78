"""Runs that lose a model or a state with a node go on from their checkpoint by themselves."""

import itertools
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Raw, digits
from peers_runs import GOSSIP, peers
from test_resume import assert_same, undisturbed

import raysim
from actors import InlinePool, ValuesLost
from raysim.parts.errors import RunFailed

IN_DOMAIN: Raw = {"server_data": {"name": "in_domain", "samples": 60}}
OFTEN: Raw = {"run__checkpoint": {"every_rounds": 2, "every_s": None}}
RUNS: dict[str, Raw] = {
    "rounds": digits(algorithm="fedavg", world={"dispatch": {"per_round": 6}}, **OFTEN),
    "asynchronous": digits(**OFTEN),
    "search": digits(algorithm={"name": "feddle", "search_after": 2}, **IN_DOMAIN, **OFTEN),
    "states": digits(algorithm="ditto", **OFTEN),
    "peers": peers(algorithm="fedf_admm", public={"samples": 20}, **OFTEN),
    "peers without waiting": peers(algorithm="dfedadmm", world=GOSSIP, **OFTEN),
}
Losing = Callable[[set[int]], None]


@pytest.fixture
def losing(monkeypatch: pytest.MonkeyPatch) -> Losing:
    """Lets pools lose their values when they get the jobs with these numbers, counted through all lives of a run."""
    submit, get = InlinePool.submit, InlinePool.get
    lost: list[InlinePool] = []
    loss = ValuesLost("train", "a model or state that it needs was lost with a node", "")

    def patched(numbers: set[int]) -> None:
        count = itertools.count()

        def submit_or_lose(pool: InlinePool, *job: Any, **told: Any) -> Any:
            if next(count) in numbers:
                lost.append(pool)
                raise loss
            return submit(pool, *job, **told)

        def get_if_there(pool: InlinePool, value: Any) -> Any:
            if pool in lost:
                raise loss
            return get(pool, value)

        monkeypatch.setattr(InlinePool, "submit", submit_or_lose)
        monkeypatch.setattr(InlinePool, "get", get_if_there)

    return patched


def versions(result: raysim.Result) -> list[int]:
    """Returns the versions of the checkpoints from which a run went on."""
    return [resumed["version"] for resumed in result.info["resumed"]]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in ("asynchronous", "states"))) for name in RUNS]
)
def test_a_run_goes_on_from_its_checkpoint(
    name: str, tmp_path: Path, losing: Losing, caplog: pytest.LogCaptureFixture
) -> None:
    whole = undisturbed(RUNS[name], tmp_path)
    losing({17})
    result = raysim.run(RUNS[name], out=tmp_path / "lost", inline=True)
    assert_same(result, whole)
    (version,) = versions(result)
    assert version >= 2
    loss = "train: a model or state that it needs was lost with a node"
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    (told,) = (text for text in warnings if loss in text)
    assert told == f"{result.folder.name}: {loss}; it continues from its checkpoint of version {version}"


def test_a_run_without_a_checkpoint_goes_on_from_its_beginning(
    tmp_path: Path, losing: Losing, caplog: pytest.LogCaptureFixture
) -> None:
    whole = undisturbed(RUNS["rounds"], tmp_path)
    losing({4})
    result = raysim.run(RUNS["rounds"], out=tmp_path / "lost", inline=True)
    assert_same(result, whole)
    assert versions(result) == [0]
    assert "it continues from its beginning" in caplog.text


def test_a_run_may_lose_values_as_often_as_it_makes_checkpoints_in_between(tmp_path: Path, losing: Losing) -> None:
    whole = undisturbed(RUNS["rounds"], tmp_path)
    losing({13, 14, 25, 26, 37, 38})
    result = raysim.run(RUNS["rounds"], out=tmp_path / "lost", inline=True)
    assert_same(result, whole)
    found = versions(result)
    assert len(found) == 6
    assert len(set(found)) == 3


def test_a_run_fails_that_loses_values_again_and_again(tmp_path: Path, losing: Losing) -> None:
    """It can be resumed."""
    whole = undisturbed(RUNS["rounds"], tmp_path)
    losing(set(range(17, 27)))
    with pytest.raises(RunFailed, match="train: a model or state that it needs was lost with a node") as failed:
        raysim.run(RUNS["rounds"], out=tmp_path / "lost", inline=True)
    (folder,) = (tmp_path / "lost").iterdir()
    assert failed.value.folder == folder
    early = raysim.Result(folder)
    assert (early.info["status"], len(early.info["resumed"])) == ("failed", 9)
    result = raysim.resume(folder, inline=True)
    assert_same(result, whole)
    assert versions(result)[0] == versions(result)[-1] >= 2
