"""Groups of clients that differ, by hand."""

from pathlib import Path
from typing import Any

import pytest
from by_hand import final, x
from command_line import command, write
from conftest import Raw, Simulate, computed, quadratic

import raysim
from raysim import ScenarioError, parse_scenario

BOTH: Raw = {"dispatch": {"picks": [[0, 1]]}}


def two(simulate: Simulate, clients: list[Raw], algorithm: Any = "fedavg", lr: float = 0.5) -> float:
    """Two clients with optima 0 and 4, from x = 1 on: with the rate 0.5, they go to 0.5 and 2.5."""
    (value,) = final(simulate, algorithm, 1, {"lr": lr}, BOTH, clients=clients)
    return value


def test_clients_of_a_group_have_settings_of_their_own(simulate: Simulate) -> None:
    group = {"name": "fast", "members": [1], "local": {"lr": 1.0}}
    assert two(simulate, [group]) == pytest.approx((0.5 + 4.0) / 2)
    partial = {"name": "busy", "members": [0], "local": {"steps": 2}}
    assert two(simulate, [partial]) == pytest.approx((0.25 + 2.5) / 2)


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        ("honest", (0.5 + 2.5) / 2),
        ("sign_flip", (0.5 - 0.5) / 2),  # from 1 by -1.5
        ({"name": "sign_flip", "scale": 2.0}, (0.5 - 2.0) / 2),
        ("zero", (0.5 + 1.0) / 2),
        ({"name": "noise", "deviation": 0.0}, (0.5 + 2.5) / 2),
    ],
)
@pytest.mark.parametrize("algorithm", ["fedavg", {"name": "fedbuff", "buffer": 2}])
def test_what_a_client_sends_instead(simulate: Simulate, behaviour: Any, expected: float, algorithm: Any) -> None:
    group = {"name": "attackers", "members": [1], "behaviour": behaviour}
    assert two(simulate, [group], algorithm) == pytest.approx(expected)


def test_what_sends_a_model_sends_it_relative_to_what_it_received(simulate: Simulate) -> None:
    """Client 1 goes from 1 to 2.5, and sends -0.5; the server goes half of the way there."""
    algorithm = {"name": "fedasync", "alpha": 0.5}
    raw = quadratic([0.0, 4.0], algorithm, {"dispatch": {"picks": [[1]]}}, 1, start=1.0)
    raw["clients"] = [{"name": "attackers", "members": [1], "behaviour": "sign_flip"}]
    assert x(simulate, {**raw, "local": {"batch_size": None, "lr": 0.5}}) == pytest.approx(0.25)


def test_a_peer_may_lie(simulate: Simulate) -> None:
    raw: Raw = {
        "name": "peers",
        "data": {"name": "quadratic", "centers": [0.0, 4.0]},
        "model": {"name": "vector", "start": 1.0},
        "algorithm": "decfedavg",
        "topology": "complete",
        "local": {"batch_size": None, "lr": 0.5},
        "clients": [{"name": "liars", "members": [1], "behaviour": "zero"}],
        "run": {"rounds": 1},
    }
    assert simulate(raw).vectors()["w"].flatten().tolist() == pytest.approx([0.75, 0.75])


SMALL: Raw = {
    "name": "small",
    "data": {"name": "digits", "clients": 10, "partition": "iid"},
    "model": {"name": "mlp", "hidden": [8]},
    "algorithm": {"name": "fedbuff", "buffer": 3},
    "world": {"dispatch": {"per_round": 4}, "delay": {"name": "half_normal", "sigma": 1}},
    "run": {"rounds": 4, "evaluate_every": 2},
}


def with_groups(*groups: Raw, **more: Any) -> Raw:
    return {**SMALL, "clients": list(groups), **more}


def test_tables_and_run_json_say_who_is_in_which_group(simulate: Simulate) -> None:
    result = simulate(with_groups({"name": "a", "members": [0, 1, 2]}, {"name": "b", "members": [3]}))
    assert result.info["groups"] == {"a": [0, 1, 2], "b": [3]}
    used = result.pandas("updates").query("status == 'used'")
    expected = used.client.map({0: 0.0, 1: 0.0, 2: 0.0, 3: 1.0})
    assert used.group.equals(expected)


def test_groups_are_drawn_from_those_that_are_not_named(tmp_path: Path) -> None:
    (tmp_path / "named.txt").write_text("3\n5\n")
    groups = parse_scenario(
        with_groups(
            {"name": "half", "share": 0.5},
            {"name": "named", "file": str(tmp_path / "named.txt")},
            {"name": "two", "number": 2},
        )
    ).groups
    names = [group.name if (group := groups.of(client)) else None for client in range(10)]
    assert names[3] == names[5] == "named"
    assert sorted(names, key=str) == [None] + ["half"] * 5 + ["named"] * 2 + ["two"] * 2


def test_an_honest_group_with_the_same_settings_changes_no_bit(simulate: Simulate) -> None:
    plain = simulate(SMALL)
    grouped = simulate(with_groups({"name": "same", "share": 0.5, "local": {"lr": 0.1}}))
    assert plain.vectors()["w"].tolist() == grouped.vectors()["w"].tolist()


@pytest.mark.parametrize("behaviour", ["flip_labels", "random_labels"])
def test_wrong_labels_are_those_of_training_only(simulate: Simulate, behaviour: str) -> None:
    """Where all clients flip labels, the model learns them, and is wrong on the test set, whose labels are right."""
    world = {"dispatch": {"per_round": 10}}
    raw = with_groups({"name": "all", "share": 1.0, "behaviour": behaviour}, algorithm="fedavg", world=world)
    evaluations = simulate(raw).pandas("evaluations")
    assert evaluations[evaluations.metric == "accuracy"].value.iloc[-1] < 0.3


def test_fewer_samples_take_less_time_where_delays_are_computed(simulate: Simulate) -> None:
    world = {"dispatch": {"per_round": 10}, "delay": computed(1e6, 1e6, 1e6)}
    raw = with_groups({"name": "partial", "members": [0], "local": {"steps": 1}}, world=world, algorithm="fedavg")
    updates = simulate({**raw, "local": {"epochs": 5}}).pandas("updates")
    took = (updates.arrived_at - updates.dispatched_at).groupby(updates.client).mean()
    assert took[0] < 0.5 * took.drop(0).min()


@pytest.mark.parametrize(
    ("groups", "problem"),
    [
        ([{"name": "a"}], r"clients\.0: must say in one way .* got none of them"),
        ([{"name": "a", "number": 2, "share": 0.5}], r"clients\.0: must say in one way .* got number and share"),
        ([{"name": "a", "members": [10]}], r"clients\.0\.members: must be numbers of clients from 0 to 9, got 10"),
        ([{"name": "a", "members": [1]}, {"name": "b", "members": [1]}], r"clients\.1\.members: client 1 must be in"),
        ([{"name": "a", "share": 0.7}, {"name": "b", "number": 4}], r"clients: must not draw more .* got 11 of 10"),
        ([{"name": "a", "number": 1}, {"name": "a", "number": 1}], r"clients\.1\.name: must be the name of one group"),
        ([{"name": "a", "file": "nowhere.txt", "local": {}}], r"clients\.0\.file: .* cannot be read"),
        ([{"name": "a", "number": 1, "local": {"lr": -1.0}}], r"clients\.0\.local\.lr: must be greater than 0"),
        ([{"name": "a", "number": 1, "local": {"rate": 1.0}}], r"clients\.0\.local\.rate: unknown key"),
        (
            [{"name": "a", "number": 1, "local": {"optimizer": {"name": "adam", "keep": True}}}],
            r"clients\.0\.local\.optimizer\.keep: must be false, because `local\.optimizer` decides",
        ),
        ([{"name": "a", "number": 1, "behaviour": "lies"}], r"clients\.0\.behaviour\.name: must be one of"),
    ],
)
def test_groups_that_make_no_sense_are_refused(groups: list[Raw], problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        parse_scenario(with_groups(*groups))


def test_parameters_that_a_group_names_must_be_there(tmp_path: Path) -> None:
    group = {"name": "a", "number": 1, "local": {"groups": [{"parameters": ["body.*"], "lr_factor": 2.0}]}}
    with pytest.raises(raysim.RunFailed, match=r"clients\.0\.local\.groups\.parameters: must match trained parameters"):
        raysim.run(with_groups(group), out=tmp_path, inline=True)
    answer = command("check", "--data", write(tmp_path, with_groups(group)))
    assert "clients.0.local.groups.parameters: must match" in answer.output


def test_what_is_wrong_for_all_is_told_once() -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(with_groups({"name": "a", "number": 1, "local": {"lr": 0.5}}, local={"precision": "tf32"}))
    assert [problem.path for problem in caught.value.problems] == ["local.precision"]


def test_what_an_algorithm_asks_of_local_training_it_asks_of_groups() -> None:
    group = {"name": "a", "number": 1, "local": {"optimizer": "adam"}}
    with pytest.raises(ScenarioError, match=r"clients\.0\.local\.optimizer: must be sgd for scaffold"):
        parse_scenario(with_groups(group, algorithm="scaffold"))
