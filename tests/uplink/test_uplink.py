"""Transforms of what clients send: by hand, in bytes, and the same bits however a run is carried out."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Raw, Simulate, digits, quadratic
from pytest import approx

import raysim
from raysim import ScenarioError, parse_scenario, run
from raysim.algorithms import Inbox
from raysim.laws.runs import PicklingPool, carried_out
from raysim.terms import ClientState, Record
from raysim.uplink.bits import Half, Quantise, Sign
from raysim.uplink.bounds import NormBound
from raysim.uplink.sparse import RandomNumbers, TopNumbers
from raysim.uplink.uplink import Size, Uplink, UplinkPoint
from raysim.workers.sending import passed

U = [3.0, -1.0, 0.5, -4.0]
SPARSE: Raw = {"name": "top_k", "share": 0.1, "memory": "ef14"}
CHAIN = [SPARSE, {"name": "quantise", "bits": 8}, {"name": "clip_norm", "max": 0.5}]
SERVER = digits(algorithm={"name": "fedbuff", "buffer": 3}, uplink=CHAIN, run__rounds=6, run__evaluate_every=3)
PEERS = digits(algorithm="decfedavg", topology="ring", world={}, uplink=[{"name": "half"}], run__rounds=4)
COMPUTE = {
    "name": "compute",
    **{
        f"{key}_per_s": {"name": "constant", "value": value}
        for key, value in (("flops", 1e7), ("up_bytes", 1e4), ("down_bytes", 1e5))
    },
}


def draw(place: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(place)


def sent(transform: Uplink, vector: list[float]) -> list[float]:
    found: list[float] = transform.send(torch.tensor(vector), {}, UplinkPoint((len(vector),), draw())).vector.tolist()
    return found


@pytest.mark.parametrize(
    ("transform", "vector", "expected"),
    [
        (NormBound(max=2.0), [3.0, 4.0], [1.2, 1.6]),
        (NormBound(max=10.0), [3.0, 4.0], [3.0, 4.0]),
        (NormBound(max=2.0), [0.0, 0.0], [0.0, 0.0]),
        (TopNumbers(k=2), U, [3.0, 0.0, 0.0, -4.0]),
        (TopNumbers(k=1), [1.0, -2.0, 2.0, 0.0], [0.0, -2.0, 0.0, 0.0]),  # of equal ones, the first
        (TopNumbers(share=0.1), U, [0.0, 0.0, 0.0, -4.0]),  # at least one
        (Half(), [1.00390625, 2.0], [1.0, 2.0]),
        (Quantise(bits=4, stochastic=False), [1.0, -0.6, 0.3], [1.0, -4 / 7, 2 / 7]),
        (Quantise(), [0.0, 0.0], [0.0, 0.0]),
        (Sign(), U, [2.125, -2.125, 2.125, -2.125]),
        (Sign(), [0.0, -0.0, -3.0], [1.0, 1.0, -1.0]),  # 0 has the sign of 1, for there are two symbols
        (Sign(), [0.0, 0.0], [0.0, 0.0]),
        (Sign(scale="none"), [*U, 0.0], [1.0, -1.0, 1.0, -1.0, 1.0]),
    ],
)
def test_what_is_decoded(transform: Uplink, vector: list[float], expected: list[float]) -> None:
    assert sent(transform, vector) == approx(expected)


def test_stochastic_rounding() -> None:
    vector, drawn = torch.tensor([1.0, -0.5, 0.3]), torch.tensor([0.5, 0.25, 0.9])
    assert Quantise(bits=8).quantised(vector, drawn).tolist() == approx([1, -0.503937, 0.307087], abs=1e-6)
    assert Quantise(bits=4).quantised(vector, drawn).tolist() == approx([1, -0.571429, 0.428571], abs=1e-6)


def test_random_places_are_right_in_the_mean() -> None:
    found = torch.stack(
        [RandomNumbers(k=2).send(torch.tensor(U), {}, UplinkPoint((4,), draw(seed))).vector for seed in range(2000)]
    )
    assert (found.count_nonzero(1) == 2).all()
    np.testing.assert_allclose(found.mean(0), U, atol=4 * (26.25 / 2000) ** 0.5)
    one = RandomNumbers(k=2, scaled=False).send(torch.tensor(U), {}, UplinkPoint((4,), draw())).vector
    assert set(one.tolist()) <= {0.0, *U}


@pytest.mark.parametrize(
    ("transforms", "bytes_"),
    [
        ([], 796_840),
        ([TopNumbers(share=0.01, index="int32")], 15_936),
        ([TopNumbers(share=0.01)], 12_450),
        ([TopNumbers(share=0.01, index="bitmap")], 32_870),
        ([TopNumbers(share=0.1)], 124_507),
        ([TopNumbers(share=1.0)], 796_840),
        ([Quantise()], 199_214),
        ([TopNumbers(share=0.01), Quantise(), NormBound(max=1.0)], 1992 + 4 + 1992 * 18 // 8),
        ([RandomNumbers(k=1000), Half()], 2008),
        ([Sign()], 24_902 + 4),  # 24,901.25 bytes of signs
        ([Sign(scale="none", memory="ef14")], 24_902),
    ],
)
def test_sizes(transforms: list[Uplink], bytes_: int) -> None:
    """A vector of 199,210 numbers takes so many bytes after these transforms."""
    size = Size((199_000, 210), values=199_210)
    for transform in transforms:
        size = transform.size(size)
    assert size.bytes == bytes_


@pytest.mark.parametrize(
    ("k", "vectors", "expected", "memory"),
    [
        (2, [U] * 5, [[3, 0, 0, -4]] * 3 + [[0, -4, 0, -4], [6, 0, 0, -4]], [0, -1, 2.5, 0]),
        (1, [U, [0, -1, 2, 1], [1, 1, 1, 1]], None, [1, -1, 0, 2]),
    ],
)
def test_a_memory_adds_what_was_cut_off(k: int, vectors: Any, expected: Any, memory: list[float]) -> None:
    kept: dict[int, Record] = {}
    found = []
    for vector in vectors:
        decoded, kept = passed([TopNumbers(k=k, memory="ef14")], torch.tensor(vector).float(), (4,), kept, draw)
        found.append(decoded)
    assert kept[0]["memory"].tolist() == memory
    torch.testing.assert_close(sum(found) + kept[0]["memory"], torch.tensor(vectors).float().sum(0))
    if expected:
        assert [one.tolist() for one in found] == expected


def test_a_memory_covers_codecs_and_no_bound() -> None:
    """Its memory is of the bits that were lost, too, but not of what a bound shortens."""
    chain = [TopNumbers(k=1, memory="ef14"), NormBound(max=2.0)]
    decoded, kept = passed(chain, torch.tensor([3.0, 4.0]), (2,), {0: {"memory": torch.tensor([2.0, -4.0])}}, draw)
    assert decoded.tolist() == [2, 0] and kept[0]["memory"].tolist() == [0, 0]
    halves = [TopNumbers(k=1, memory="ef14"), Half()]
    _, kept = passed(halves, torch.tensor([1.00390625, 0.5]), (2,), {}, draw)
    assert kept[0]["memory"].tolist() == [0.00390625, 0.5]


def test_signs_with_a_memory() -> None:
    _, kept = passed([Sign(memory="ef14")], torch.tensor(U), (4,), {}, draw)
    assert kept[0]["memory"].tolist() == [0.875, 1.125, -1.625, -1.875]
    again, _ = passed([Sign(memory="ef14")], torch.zeros(4), (4,), kept, draw)
    assert again.tolist() == [1.375, 1.375, -1.375, -1.375]


def test_peers_mix_what_is_decoded_and_keep_their_mean() -> None:
    """Two peers, x = (1, 3) and (5, -1), send their largest entry; each moves by half of the difference of those."""
    exact, decoded = torch.tensor([[1.0, 3.0], [5.0, -1.0]]), torch.tensor([[0.0, 3.0], [5.0, 0.0]])
    mixed = [
        Inbox({"w": exact[i]}, [{"w": decoded[1 - i]}], [0.5], {"w": decoded[i]}).mixed("w").tolist() for i in (0, 1)
    ]
    assert mixed == [[3.5, 1.5], [2.5, 0.5]]


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


@pytest.mark.parametrize("raw", [SERVER, {**SERVER, "algorithm": "scaffold", "uplink": [SPARSE]}, PEERS])
def test_the_same_bits_when_a_run_goes_on(raw: Raw) -> None:
    assert carried_out(raw, PicklingPool(), stop_after=2).digest == carried_out(raw).digest


@pytest.mark.slow
def test_the_same_bits_in_two_processes(tmp_path: Path) -> None:
    for raw in (SERVER, PEERS):
        one, two = (
            run(parse_scenario(raw), out=tmp_path, progress=False, **how) for how in ({"inline": True}, {"local": 2})
        )
        assert one.digest == two.digest


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
        ({"uplink": [SPARSE, SPARSE]}, "uplink.1.memory: must be none, for uplink.0 has a memory"),
        ({"uplink": [{"name": "top_k"}]}, "must have one of share and k, got none"),
        ({"uplink": [SPARSE, {"name": "sign"}]}, "uplink.1: must be left out, for uplink.0 leaves numbers out"),
        ({"algorithm": "mifa", "uplink": [{"name": "sign"}]}, "uplink.0: mifa .* give it memory: ef14"),
        ({"uplink": [{**SPARSE, "name": "random_k"}]}, "uplink.0: must not have both scaled and memory: .* to false"),
        ({"algorithm": "feddyn", "uplink": [{"name": "half"}]}, "uplink.0: feddyn sums up .* take top_k with"),
        (
            {"algorithm": "scaffold", "uplink": [{"name": "half"}]},
            "uplink.0: scaffold sums up .* take top_k with",
        ),
        (
            {"algorithm": "mifa", "uplink": [SPARSE, {"name": "clip_norm", "max": 1.0}]},
            "uplink.1: mifa .* leave clip",
        ),
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
    with pytest.raises(raysim.RunFailed, match="uplink: must be left out, for local_only sends no vector"):
        run(parse_scenario(raw), out=tmp_path, inline=True, progress=False)
