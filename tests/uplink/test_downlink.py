"""Transforms of the server's message: what clients decode, what it costs, and the same bits however a run is done."""

from typing import Any

import numpy as np
import pytest
from conftest import Raw, Simulate, computed, digits, quadratic
from pytest import approx

from raysim import ScenarioError, parse_scenario

TOP: Raw = {"name": "top_k", "share": 0.1, "memory": "shadow"}
EACH: Raw = {**TOP, "shadow": "client"}
COMPUTE = computed(1e7, 1e4, 1e4)


@pytest.mark.parametrize(
    ("models", "expected"),
    [
        ([[1, 2, 3]] * 3, [[0, 0, 3], [0, 2, 3], [1, 2, 3]]),
        ([[1, 2, 3], [2, 2, 3], [2, 2, 1]], [[0, 0, 3], [2, 0, 3], [2, 2, 3]]),
    ],
)
def test_clients_train_from_what_they_decode(models: Any, expected: Any, simulate: Simulate) -> None:
    """The server's model is as in the first list; clients log what they got of it, which begins with 0."""
    raw = quadratic(
        [[0, 0, 0]],
        {"name": "toys:Scripted", "models": [x for model in models for x in model]},
        {"dispatch": {"per_round": 1}},
        4,
        downlink=[{"name": "top_k", "k": 1, "memory": "shadow"}],
    )
    updates = simulate(raw).pandas("updates")
    assert updates[["x0", "x1", "x2"]].to_numpy().tolist()[1:] == expected


@pytest.mark.parametrize("algorithm", ["fedavg", "fedasync", "scaffold"])
def test_what_changes_nothing_leaves_the_bits(algorithm: str, simulate: Simulate) -> None:
    raw = digits(algorithm=algorithm, run__rounds=3)
    whole = {**TOP, "share": 1.0}
    plain = simulate(raw)
    for one in (whole, {**whole, "shadow": "client"}):
        found = simulate({**raw, "downlink": [one]})
        assert np.array_equal(found.vectors()["w"], plain.vectors()["w"])
        assert found.pandas("evaluations").value.tolist() == plain.pandas("evaluations").value.tolist()


def test_increments_that_were_missed_are_sent_or_the_whole_if_that_is_smaller(simulate: Simulate) -> None:
    raw = digits(algorithm={"name": "fedbuff", "buffer": 1}, downlink=[{**TOP, "share": 0.2}], run__rounds=12)
    result = simulate(raw)
    updates = result.pandas("updates").query("status == 'used'")
    whole = 4 * result.info["parameters"]
    k = result.info["parameters"] // 5
    one = 4 * k + -(-k * 11 // 8)
    had: dict[int, int] = {}
    for _, group in updates.groupby("step"):
        for client, version, down in zip(group.client, group.version, group.down_bytes, strict=True):
            missed = version - had[client] if client in had else None
            assert abs(down - (whole if missed is None else min(missed * one, whole))) <= 12
        had.update(zip(group.client, group.version, strict=True))
    assert len(set(updates.down_bytes)) >= 2


@pytest.mark.parametrize("downlink", [[{"name": "half"}], [TOP], [EACH]])
def test_computed_delays_budgets_and_tables_count_one_size(downlink: Any, simulate: Simulate) -> None:
    world = {"dispatch": {"per_round": 4}, "delay": COMPUTE}
    raw = digits(algorithm="fedasync", world=world, downlink=downlink, run__rounds=6)
    result = simulate(raw)
    updates = result.pandas("updates").query("status == 'used'")
    seconds = updates.arrived_at - updates.dispatched_at - (updates.up_bytes + updates.down_bytes) / 1e4
    np.testing.assert_allclose(
        seconds / updates.samples_seen, seconds.iloc[0] / updates.samples_seen.iloc[0], rtol=1e-6
    )
    assert simulate(raw, "--dry").pandas("updates").arrived_at.tolist() == result.pandas("updates").arrived_at.tolist()


def test_a_copy_for_each_client_comes_to_the_model(simulate: Simulate) -> None:
    one = {"name": "top_k", "k": 1, "memory": "shadow", "shadow": "client"}
    world = {"dispatch": {"per_round": 2}}
    raw = quadratic([[3, -1], [1, 7]], "fedavg", world, 60, local__lr=0.3, downlink=[one])
    assert simulate(raw).module().x.tolist() == approx([2, 3], abs=1e-3)


LEVELS = digits(
    algorithm="heterofl", capacity={"levels": [1.0, 0.5]}, model={"name": "mlp", "hidden": [16, 8]}, run__rounds=4
)


@pytest.mark.parametrize("algorithm", ["heterofl", "fedrolex"])
def test_slices_travel_in_their_own_sizes(algorithm: str, simulate: Simulate) -> None:
    """A level sends half of its own bytes, to each client by itself; computed delays and dry runs count the same."""
    world = {"dispatch": {"per_round": 4}, "delay": COMPUTE}
    raw = {**LEVELS, "algorithm": algorithm, "world": world, "downlink": ["half"]}
    result = simulate(raw)
    updates = result.pandas("updates").query("status == 'used'")
    assert set(updates.level) == {1.0, 0.5} and (updates.down_bytes * 2 == updates.up_bytes).all()
    assert simulate(raw, "--dry").pandas("updates").arrived_at.tolist() == result.pandas("updates").arrived_at.tolist()


def test_copies_of_slices_come_to_the_model(simulate: Simulate) -> None:
    plain = simulate(LEVELS)
    exact = simulate({**LEVELS, "downlink": [{**EACH, "share": 1.0}]})
    assert np.array_equal(exact.vectors()["w"], plain.vectors()["w"])
    updates = simulate({**LEVELS, "run": {"rounds": 8}, "downlink": [EACH]}).pandas("updates")
    sizes = updates.query("status == 'used'").groupby("level").down_bytes
    assert (sizes.nunique() == 2).all() and (sizes.min() < 0.2 * sizes.max()).all()  # the whole slice, then increments


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({**LEVELS, "downlink": [TOP]}, "downlink.0.shadow: must be client where clients have levels"),
        ({**LEVELS, "algorithm": "fedrolex", "downlink": [EACH]}, "downlink.0: must keep nothing of a client, whose"),
        ({"downlink": [{"name": "top_k", "k": 1}]}, "downlink.0: must have memory: shadow, .* is not a model; set it"),
        ({"downlink": ["low_rank"]}, "downlink.0: must have memory: shadow"),
        ({"downlink": ["ternary"]}, "downlink.0: must have memory: shadow, .* take top_k with that before it"),
        ({"downlink": [{"name": "clip_norm", "max": 1.0}]}, "downlink.0: must be a codec, got clip_norm"),
        ({"downlink": [TOP, EACH]}, "downlink.1.memory: must be none"),
        ({"downlink": [TOP, {**EACH, "entries": ["c"]}]}, "downlink.1.shadow: must be all as that of the others, got"),
        ({"downlink": [{**TOP, "share": {"name": "constant", "value": 0.1}}]}, "downlink.0.share: must be a number,"),
        ({"uplink": [TOP]}, "uplink.0.memory: must be none, ef14 or ef21, got shadow"),
        ({"uplink": [{**TOP, "memory": "ef14", "shadow": "client"}]}, "uplink.0: must not have `shadow` with memory"),
        ({"uplink": [{**TOP, "memory": "ef21", "decay": 0.5}]}, "uplink.0: must not have `decay` with memory: ef21"),
        ({"uplink": [{"name": "sign", "scale": "none", "memory": "ef21"}]}, "uplink.0.memory: must be none or ef14"),
        (
            {"algorithm": "decfedavg", "topology": "ring", "world": {}, "downlink": ["half"]},
            "downlink: must be left out for decfedavg",
        ),
        (
            {"algorithm": "flexlora", "model": {"name": "mlp", "lora": {"rank": 2}}, "downlink": ["half"]},
            "downlink: must be left out for flexlora",
        ),
    ],
)
def test_what_is_refused(changes: Raw, text: str) -> None:
    with pytest.raises(ScenarioError, match=text):
        parse_scenario(digits(**changes))
