"""Transforms of what clients send: by hand, in bytes, and the same bits however a run is carried out."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Raw, Simulate, computed, digits, quadratic
from pytest import approx

import raysim
from raysim import ScenarioError, parse_scenario, run
from raysim.terms import ClientState

U = [3.0, -1.0, 0.5, -4.0]
SPARSE: Raw = {"name": "top_k", "share": 0.1, "memory": "ef14"}
PEERS = digits(algorithm="decfedavg", topology="ring", world={}, uplink=[{"name": "half"}], run__rounds=4)
COMPUTE = computed(1e7, 1e4, 1e5)


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        ("none", [[2.25, 2.25, 3.75, -0.25], [2.625, 2.25, 3.375, -0.25]]),
        ("ef14", [[2.25, 2.25, 3.75, -0.25], [2.375, 2.25, 3.625, -0.25], [3.28125, 1.125, 2.71875, 0.875]]),
        ("ef21", [[2.25, 2.25, 3.75, -0.25], [2.625, 1.5, 3.375, 0.5], [3.0, 1.25, 3.0, 0.75]]),
    ],
)
def test_peers_step_towards_what_is_decoded(memory: str, expected: list[list[float]], simulate: Simulate) -> None:
    """Two peers, trained to (1, 3) and (5, -1) at once, send their largest entry, and go half of the way: naive gossip,
    DeepSqueeze and CHOCO. Their mean stays where it was."""
    topology = {"name": "ring", "weights": "metropolis", "step": 0.5}
    more: Raw = {"uplink": [{"name": "top_k", "k": 1, "memory": memory}], "topology": topology}
    more["local__lr"] = {"name": "step", "start": 1.0, "factor": 1e-12, "milestones": [1]}
    for rounds, models in enumerate(expected, start=1):
        raw = quadratic([[1.0, 3.0], [5.0, -1.0]], "decfedavg", {}, rounds, **more)
        assert simulate(raw).vectors()["w"].flatten().tolist() == models


@pytest.mark.parametrize(
    ("memory", "sent", "kept"),
    [
        ("ef14", [5.0, 5.0, 5.0, 32**0.5, 52**0.5], [1.25**0.5, 5**0.5, 11.25**0.5, 13**0.5, 7.25**0.5]),
        ("ef21", [5.0, 26.25**0.5], [5.0, 26.25**0.5]),
    ],
)
def test_a_memory_lasts_from_round_to_round(memory: str, sent: Any, kept: Any, simulate: Simulate) -> None:
    """The update is U in each round. Sent are (3, 0, 0, -4) three times, (0, -4, 0, -4) and (6, 0, 0, -4), or with ef21
    (3, 0, 0, -4) and U."""
    algorithm, chain = {"name": "fedavg", "server": {"lr": 1e-12}}, [{"name": "top_k", "k": 2, "memory": memory}]
    raw = quadratic([U], algorithm, {"dispatch": {"per_round": 1}}, len(sent), uplink=chain)
    updates = simulate(raw).pandas("updates")
    assert updates.norm_after.tolist() == approx(sent) and updates.memory_norm.tolist() == approx(kept)


def test_a_state_is_the_same_after_a_file_held_it() -> None:
    state = ClientState({"a/b": 1}, {"momentum": 2}, {0: {"memory": 3}, 2: {"memory": 4}}, {"w": 5})
    assert ClientState.of_flat(state.flat()) == state


# --- runs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw", [digits(), digits(algorithm="fedasync"), digits(algorithm="decfedavg", topology="ring", world={})]
)
def test_what_changes_nothing_leaves_the_bits(raw: Raw, simulate: Simulate) -> None:
    chain = [{"name": "top_k", "share": 1.0, "memory": "ef14"}, {"name": "clip_norm", "max": 1e9}]
    assert simulate({**raw, "uplink": chain}).digest == simulate(raw).digest


@pytest.mark.parametrize(("aggregate", "expected"), [("majority", [1, -1, 1]), ("mean", [1 / 3, -1 / 3, 1 / 3])])
def test_votes_and_means_of_signs(aggregate: str, expected: list[float], simulate: Simulate) -> None:
    """Client i sends the sign of its optimum. A vote moves by a whole step, and the mean of three signs by less."""
    optima = [[3, -1, 0.5], [-1, -1, 2], [1, 2, -1]]
    algorithm = {"name": "fedavg", "weights": "uniform", "aggregate": aggregate}
    raw = quadratic(optima, algorithm, {"dispatch": {"per_round": 3}}, 1, uplink=[{"name": "sign", "scale": "none"}])
    assert simulate(raw).module().x.tolist() == approx(expected)


def test_mifa_with_a_memory_is_ef21_of_all_clients(simulate: Simulate) -> None:
    """What a client sends is (3, 0, 0, -4), then what was left out, so the server's mean is then what was trained. The
    server's rate is so small that its model stays where it is."""
    one, rate = {"name": "top_k", "k": 2, "memory": "ef14"}, 1e-4
    algorithm = {"name": "mifa", "server_lr": rate}
    for rounds, expected in ((1, [3, 0, 0, -4]), (2, [6, -1, 0.5, -8])):  # the sum of the means
        raw = quadratic([U], algorithm, {"dispatch": {"per_round": 1}}, rounds, uplink=[one])
        assert (simulate(raw).module().x / rate).tolist() == approx(expected, abs=2e-3)


@pytest.mark.parametrize("algorithm", ["fedavg", "fedasync"])
def test_computed_delays_budgets_and_tables_count_one_size(algorithm: str, simulate: Simulate) -> None:
    world = {"dispatch": {"per_round": 4}, "delay": COMPUTE}
    raw = digits(algorithm=algorithm, world=world, uplink=[{"name": "top_k", "k": 10}], run__rounds=3)
    result = simulate(raw)
    updates = result.pandas("updates").query("status == 'used'")
    assert set(updates.up_bytes) == {10 * 4 + -(-10 * 11 // 8)}  # 1,210 numbers have places of 11 bits
    seconds = updates.arrived_at - updates.dispatched_at - updates.up_bytes / 1e4 - updates.down_bytes / 1e5
    np.testing.assert_allclose(
        seconds / updates.samples_seen, seconds.iloc[0] / updates.samples_seen.iloc[0], rtol=1e-6
    )
    assert simulate(raw, "--dry").pandas("updates").arrived_at.tolist() == result.pandas("updates").arrived_at.tolist()


@pytest.mark.parametrize(
    ("uplink", "seconds"),
    [([], 0.896840), (["quantise"], 0.299214), ([{"name": "top_k", "share": 0.01, "index": "int32"}], 0.115936)],
    ids=["float32", "int8", "sparse"],
)
def test_seconds_by_hand(uplink: Any, seconds: float, simulate: Simulate) -> None:
    """A model of 199,210 numbers over a link of 1 MB/s up with a latency of 0.1 s, without computing."""
    world = {"dispatch": {"per_round": 1}, "delay": computed(1e30, 1e6, 1e30, latency_s=0.1)}
    raw = digits(algorithm="fedavg", model__hidden=[2656], world=world, uplink=uplink, run={"rounds": 1})
    assert simulate(raw, "--dry").pandas("updates").arrived_at.tolist() == approx([seconds], abs=1e-6)


def test_messages_of_peers_have_the_size_of_what_travels(simulate: Simulate) -> None:
    result = simulate(PEERS)
    assert set(result.pandas("exchanges").bytes) == {2 * result.info["parameters"]}


def test_padding_is_not_seen(simulate: Simulate) -> None:
    """Where a part is personal, the shared one is padded, and what travels is the shared part without that."""
    raw = digits(algorithm="fedper", model__personal=["head"], uplink=[{"name": "half"}])
    assert set(simulate(raw).pandas("updates").up_bytes.dropna()) == {2 * (64 * 16 + 16)}


def test_random_places_with_a_memory_lose_nothing(simulate: Simulate) -> None:
    one = {"name": "random_k", "k": 2, "scaled": False, "memory": "ef14"}
    raw = quadratic([U], "fedavg", {"dispatch": {"per_round": 1}}, 200, local__lr=0.1, uplink=[one])
    assert simulate(raw).module().x.tolist() == approx(U, abs=1e-3)


def test_feddyn_with_a_memory_finds_the_optimum_of_all_clients(simulate: Simulate) -> None:
    """Without one, it would stay at another point, for h would not be what the clients' gradients are."""
    algorithm, world = {"name": "feddyn", "alpha": 0.5}, {"dispatch": {"per_round": 2}}
    chain = [{"name": "top_k", "k": 1, "memory": "ef14"}]
    raw = quadratic([[3, -1], [1, 7]], algorithm, world, 400, local__lr=0.3, local__steps=2, uplink=chain)
    assert simulate(raw).module().x.tolist() == approx([2, 3], abs=1e-3)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"uplink": [SPARSE, SPARSE]}, "uplink.1.memory: must be none, because uplink.0 has a memory"),
        ({"uplink": [{"name": "top_k"}]}, "must have one of share and k, got none"),
        ({"algorithm": "mifa", "uplink": [{"name": "sign"}]}, "uplink.0: mifa .* give it memory: ef14"),
        ({"uplink": [{**SPARSE, "name": "random_k"}]}, "uplink.0: must not have both scaled and memory: .* to false"),
        ({"algorithm": "feddyn", "uplink": [{"name": "half"}]}, "uplink.0: feddyn sums up .* take top_k with"),
        ({"algorithm": "scaffold", "uplink": [{"name": "half"}]}, "uplink.0: scaffold sums up .* take top_k with"),
        ({"algorithm": "mifa", "uplink": [SPARSE, {"name": "clip_norm", "max": 1.0}]}, "uplink.1: mifa .* leave clip"),
        (
            {"algorithm": "flexlora", "model": {"name": "mlp", "lora": {"rank": 2}}, "uplink": [{"name": "half"}]},
            "uplink: must be left out for flexlora",
        ),
    ],
)
def test_what_is_refused(changes: Raw, text: str) -> None:
    with pytest.raises(ScenarioError, match=text):
        parse_scenario(digits(**changes))


def test_an_algorithm_without_vectors_is_told(tmp_path: Path) -> None:
    raw = digits(algorithm="local_only", uplink=[{"name": "half"}])
    with pytest.raises(raysim.RunFailed, match="uplink: must be left out, because local_only sends no vector"):
        run(parse_scenario(raw), out=tmp_path, inline=True, progress=False)


def test_a_step_of_one_leaves_the_bits_and_a_smaller_one_does_not(simulate: Simulate) -> None:
    raw = digits(algorithm="decfedavg", topology={"name": "ring", "step": 1.0}, world={}, run__rounds=2)
    one = simulate(raw)
    assert one.digest == simulate({**raw, "topology": "ring"}).digest
    assert one.digest != simulate({**raw, "topology": {"name": "ring", "step": 0.5}}).digest


def test_float16_ends_a_run_by_name(tmp_path: Path) -> None:
    raw = digits(algorithm="fedavg", local__lr=1e7, uplink=[{"name": "half", "type": "float16"}])
    with pytest.raises(raysim.RunFailed, match=r"uplink.0.type: must have room for all numbers that half sends"):
        run(parse_scenario(raw), out=tmp_path, inline=True, progress=False)


def test_named_entries_travel_so_and_others_as_they_are(simulate: Simulate) -> None:
    raw = digits(algorithm="fedproto", uplink=[{"name": "half", "entries": ["sums"]}], run__rounds=2)
    assert set(simulate(raw).pandas("updates").up_bytes.dropna()) == {2 * 10 * 16 + 4 * 10}


def test_statistics_of_norms_travel_so_if_asked(simulate: Simulate) -> None:
    normed = {"name": "module", "module": "own_modules:Net", "args": {"hidden": 4}}
    sizes = {}
    for buffers in (False, True):
        raw = digits(algorithm="fedavg", model=normed, uplink=[{"name": "half", "buffers": buffers}], run__rounds=2)
        result = simulate(raw)
        (sizes[buffers],) = set(result.pandas("updates").up_bytes.dropna())
    parameters = result.info["parameters"]
    assert sizes[False] == 2 * parameters + 4 * 12 and sizes[True] == 2 * (parameters + 12)


def test_entries_that_are_not_sent_are_told(tmp_path: Path) -> None:
    raw = digits(algorithm="fedavg", uplink=[{"name": "half", "entries": ["delta", "foo"]}])
    with pytest.raises(raysim.RunFailed, match=r"uplink.0.entries: must name .* which are delta, buffers, got foo"):
        run(parse_scenario(raw), out=tmp_path, inline=True, progress=False)


def test_an_entry_goes_through_one_list_of_transforms(tmp_path: Path) -> None:
    """Else what a later transform makes of the update as it was would take the place of the clipped one."""
    uplink = [{"name": "clip_norm", "max": 0.1}, {"name": "half", "entries": ["delta"]}]
    with pytest.raises(raysim.RunFailed, match=r"uplink.1.entries: must be the same as those of uplink.0, which takes"):
        run(digits(algorithm="fedavg", uplink=uplink), out=tmp_path, inline=True, progress=False)


def test_columns_say_what_was_cut_off(simulate: Simulate) -> None:
    chain = [{"name": "top_k", "k": 1, "memory": "ef14"}]
    raw = quadratic([[3, -4]], "fedavg", {"dispatch": {"per_round": 1}}, 2, uplink=chain)
    updates = simulate(raw).pandas("updates")
    assert updates.norm_before.tolist() == [5, 3] and updates.norm_after.tolist() == [4, 6]
    assert updates.memory_norm.tolist() == [3, 0] and updates.relative_error.tolist() == approx([0.6, 1.0])


def test_bytes_in_the_code_of_elias_are_told(simulate: Simulate) -> None:
    raw = digits(algorithm="fedavg", uplink=[{"name": "qsgd", "levels": 1}], run__rounds=2)
    updates = simulate(raw).pandas("updates").query("status == 'used'")
    assert (updates.elias_bytes < updates.up_bytes / 2).all() and updates.elias_bytes.min() > 4  # most levels are 0


def test_masks_may_be_shared(simulate: Simulate) -> None:
    """All clients of a version send one place, which the server's model therefore moves in alone."""
    one = {"name": "random_k", "k": 1, "scaled": False, "shared": True}
    raw = quadratic([[1, 2, 3, 4], [4, 3, 2, 1]], "fedavg", {"dispatch": {"per_round": 2}}, 1, uplink=[one])
    assert sum(simulate(raw).module().x != 0) == 1
    many = {**one, "shared": False}
    moved = [int(sum(simulate({**raw, "uplink": [many], "seed": seed}).module().x != 0)) for seed in range(5)]
    assert max(moved) == 2


def test_numbers_may_be_schedules(simulate: Simulate) -> None:
    share = {"name": "step", "start": 1.0, "factor": 0.5, "every": 1}
    raw = quadratic([[3, -4]], "fedavg", {"dispatch": {"per_round": 1}}, 2, uplink=[{"name": "top_k", "share": share}])
    assert simulate(raw).pandas("updates").up_bytes.tolist() == [8, 5]
