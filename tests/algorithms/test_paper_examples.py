"""The algorithms in examples/, which are written as a user's own: by hand, where they are others, and by their laws."""

from typing import Any

import pytest
from by_hand import final, scripted
from conftest import ROOT, Raw, Simulate, digits, override, quadratic
from ruamel.yaml import YAML

from raysim import Result
from raysim.laws.check import check
from raysim.laws.subject import Subject

EXAMPLES = ROOT / "examples"
OWN = {"fedvarp": "own_algorithm:FedVARP", "asyncfeded": "asyncfeded:AsyncFedED", "directions": "directions:Directions"}
TRACKING = "own_peer_algorithm:GradientTracking"


@pytest.fixture(autouse=True)
def _in_the_folder_of_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)


def of(name: str, **keys: Any) -> Raw:
    return {"name": OWN[name], **keys}


def test_fedvarp_by_hand(simulate: Simulate) -> None:
    """Optima 0 and 4, from 1 on. Client 0 goes by -0.5, to x = 0.5. Then client 1 goes by 1.75, and client 0 counts
    with half of -0.5: x = 0.5 - 0.25 + 1.75. Then client 0 goes by -1, which is 0.5 less than last time, and the mean
    is 0.625."""
    world = {"dispatch": {"picks": [[0], [1], [0]]}}
    got = [final(simulate, of("fedvarp"), rounds, {"lr": 0.5}, world) for rounds in (1, 2, 3)]
    assert got == [pytest.approx([0.5]), pytest.approx([2.0]), pytest.approx([2.0 + 0.625 - 0.5])]


def test_asyncfeded_by_hand(simulate: Simulate) -> None:
    """Client 0 moves the model from 1 to 0.5. Then client 1 sends 1.5, and gamma = 0.5 / 1.5, eta = 1 / (1 + 1/3)."""
    world = scripted([[0, 1]], [[0.0], [0.0]])
    assert final(simulate, of("asyncfeded"), 1, {"lr": 0.5}, world) == pytest.approx([0.5 + 0.75 * 1.5])


def test_directions_by_hand(simulate: Simulate) -> None:
    """With a rate of 1.5, the model goes past the target each time, so that steps turn round."""
    result = simulate(quadratic([1.0], of("directions", kept=2), {"dispatch": {"per_round": 1}}, 4, local__lr=1.5))
    steps = result.pandas("steps")
    assert [column for column in steps if column.startswith("cosine_")] == ["cosine_1", "cosine_2"]
    assert steps.cosine_1.tolist()[1:] == pytest.approx([-1.0, -1.0, -1.0])
    assert steps.cosine_2.tolist()[2:] == pytest.approx([1.0, 1.0])
    assert steps[["cosine_1", "cosine_2"]].isna().sum().tolist() == [1, 2]


def test_directions_changes_no_bit_of_fedavg(simulate: Simulate) -> None:
    own, same = (models(simulate(digits(algorithm=name))) for name in (of("directions"), "fedavg"))
    assert own == same


@pytest.mark.parametrize(
    "name", [OWN["fedvarp"], TRACKING, *(pytest.param(OWN[name], marks=pytest.mark.slow) for name in [*OWN][1:])]
)
def test_it_passes_raysim_test(name: str) -> None:
    outcomes = list(check(Subject(name), ray=False))
    assert [outcome for outcome in outcomes if outcome.state != "ok"] == []


@pytest.mark.parametrize("name", OWN)
def test_its_scenario_runs(simulate: Simulate, name: str) -> None:
    raw = YAML(typ="safe").load(EXAMPLES / f"{name}.yaml")
    result = simulate(override(raw, run__rounds=4))
    assert result.info["status"] == "finished"
    assert result.info["scenario"]["algorithm"]["name"] == OWN[name]


def models(result: Result) -> Any:
    return result.info["digest"]["model"]
