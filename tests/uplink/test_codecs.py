"""Codecs by hand: what is decoded, what travels, and what a memory adds."""

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from pytest import approx

from raysim.terms import Record
from raysim.uplink import levels
from raysim.uplink.channel import Channel, Transformed
from raysim.uplink.levels import QSGD, Half, Quantise, Sign, Ternary, elias_bits, uniform
from raysim.uplink.noise import NormBound
from raysim.uplink.sparse import LowRankFactors, RandomNumbers, TopNumbers, golomb_bits, largest
from raysim.uplink.uplink import Decoded, Size, Uplink, UplinkPoint

U = [3.0, -1.0, 0.5, -4.0]


def draw(place: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(place)


def through(transforms: list[Uplink], vector: list[float], kept: dict[int, Record] | None = None) -> Transformed:
    """Takes a vector through transforms, as an update of one layer."""
    chain = Channel("uplink", dict(enumerate(transforms)), ((len(vector),),))
    return chain(torch.tensor(vector), kept or {}, draw)


def over(transforms: list[Uplink], vectors: list[Any]) -> tuple[list[list[float]], torch.Tensor | None]:
    """Takes vectors through transforms, one after another. Returns what is decoded, and the memory at the end."""
    kept: dict[int, Record] = {}
    found = []
    for vector in vectors:
        after = through(transforms, [float(one) for one in vector], kept)
        kept = after.kept
        found.append(after.vector.tolist())
    return found, kept.get(0, {}).get("memory")


@pytest.mark.parametrize(
    ("transforms", "vector", "expected"),
    [
        ([NormBound(max=2.0)], [3.0, 4.0], [1.2, 1.6]),
        ([NormBound(max=10.0)], [3.0, 4.0], [3.0, 4.0]),
        ([NormBound(max=2.0)], [0.0, 0.0], [0.0, 0.0]),
        ([TopNumbers(k=2)], U, [3.0, 0.0, 0.0, -4.0]),
        ([TopNumbers(k=1)], [1.0, -2.0, 2.0, 0.0], [0.0, -2.0, 0.0, 0.0]),  # of equal ones, the first
        ([TopNumbers(share=0.1)], U, [0.0, 0.0, 0.0, -4.0]),  # at least one
        ([Half()], [1 / 3, 65520.0, 1.0009765625, -2049.0], [0.333984375, 65536.0, 1.0, -2048.0]),
        ([Half(type="float16")], [1 / 3, 1.0009765625, -2049.0], [0.333251953, 1.0009765625, -2048.0]),
        ([Half(type="float16")], [65519.0], [65504.0]),
        ([Half(type="float16")], [1e-8, math.inf], [0.0, math.inf]),  # what was infinite already is told as that
        ([Quantise(bits=4, stochastic=False)], [1.0, -0.6, 0.3], [1.0, -4 / 7, 2 / 7]),
        ([Quantise(bits=4, stochastic=False, block=2)], [1.0, 0.3, 7.0], [1.0, 2 / 7, 7.0]),
        ([Quantise()], [0.0, 0.0], [0.0, 0.0]),
        ([Quantise()], [127.0, -64.0, 39.0, 0.0], [127.0, -64.0, 39.0, 0.0]),  # multiples are not rounded
        ([QSGD(levels=4, norm="inf")], [4.0, -3.0, 0.0], [4.0, -3.0, 0.0]),
        ([Sign()], U, [2.125, -2.125, 2.125, -2.125]),
        ([Sign()], [0.0, -0.0, -3.0], [1.0, 1.0, -1.0]),  # 0 has the sign of 1, because there are two symbols
        ([Sign()], [0.0, 0.0], [0.0, 0.0]),
        ([Sign(scale="none")], [*U, 0.0], [1.0, -1.0, 1.0, -1.0, 1.0]),
        ([TopNumbers(k=2), Sign()], U, [3.5, 0.0, 0.0, -3.5]),  # sparse ternary compression
        ([TopNumbers(k=2), Sign()], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
        ([QSGD(block=2)], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
    ],
)
def test_what_is_decoded(transforms: list[Uplink], vector: list[float], expected: list[float]) -> None:
    assert through(transforms, vector).vector.tolist() == approx(expected)


def test_float16_ends_at_its_largest_number() -> None:
    with pytest.raises(Exception, match="float16 ends at 65,504, got 65520; take bfloat16"):
        through([Half(type="float16")], [65520.0])


CLIPPED = NormBound(max=2.0)


@pytest.mark.parametrize(
    ("transforms", "vector", "drawn", "expected"),
    [
        ([Quantise(bits=8)], [1.0, -0.5, 0.3], [0.5, 0.25, 0.9], [1, -0.503937, 0.307087]),
        ([Quantise(bits=4)], [1.0, -0.5, 0.3], [0.5, 0.25, 0.9], [1, -0.571429, 0.428571]),
        ([QSGD(levels=4)], [3.0, -4.0], [0.3, 0.5], [3.75, -3.75]),
        ([QSGD(levels=1)], U, [0.5, 0.1, 0.1, 0.9], [5.123475, -5.123475, 0, 0]),
        ([Ternary()], U, [0.5, 0.5, 0.1, 0.9], [4, 0, 4, -4]),
        ([CLIPPED, QSGD(levels=1)], [3.0, -4.0], [0.3, 0.5], [2, -2]),  # longer than what was clipped
        ([CLIPPED, QSGD(levels=1), CLIPPED], [3.0, -4.0], [0.3, 0.5], [1.414214, -1.414214]),
    ],
)
def test_levels(
    transforms: list[Uplink], vector: list[float], drawn: Any, expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(levels, "uniform", lambda *_: torch.tensor(drawn))
    assert through(transforms, vector).vector.tolist() == approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        (QSGD(levels=1, block="layer"), [[0, 5, -5], [0, -1]]),
        (QSGD(levels=1, norm="inf", block="layer"), [[0, 4, -4], [0, -1]]),
        (Ternary(block="layer"), [[0, 4, -4], [0, -1]]),
        (Ternary(clip_sigma=0.5, block="layer"), [[1.75, -1.75], [0, -0.25]]),  # the half of each deviation
    ],
)
def test_each_block_has_a_scale(transform: Uplink, expected: list[list[float]]) -> None:
    size = Size.dense(((2,), (2,)))
    vector = torch.tensor([3.0, -4.0, 0.0, -1.0])
    found = transform.send(vector, {}, UplinkPoint(size, draw())).vector.tolist()
    assert all(one in allowed for one, allowed in zip(found, [expected[0]] * 2 + [expected[1]] * 2, strict=True)), found
    whole = transform.model_copy(update={"block": "whole"})
    assert transform.size(size).bits - whole.size(size).bits == 32


def test_random_places(monkeypatch: pytest.MonkeyPatch) -> None:
    found = RandomNumbers(k=2, scaled=False).send(torch.tensor(U), {}, UplinkPoint(Size.dense(((4,),)), draw())).vector
    assert found.count_nonzero() == 2 and set(found.tolist()) <= {0.0, *U}
    drawn: dict[bool, list[torch.Tensor]] = {False: [], True: []}
    for places in combinations(range(4), 2):
        monkeypatch.setattr(torch, "randperm", lambda *_, places=places, **__: torch.tensor(places))
        for scaled, masks in drawn.items():
            masks.append(through([RandomNumbers(k=2, scaled=scaled)], U).vector)
    all_masks = drawn[True]
    assert drawn[False][1].tolist() == [3, 0, 0.5, 0] and all_masks[1].tolist() == [6, 0, 1, 0]
    assert torch.stack(all_masks).mean(0).tolist() == approx(U)
    assert float((torch.stack(all_masks) - torch.tensor(U)).square().sum(1).mean()) == 26.25


@pytest.mark.parametrize("length", [5, 100, 20_000])
@pytest.mark.parametrize("kind", ["normal", "ties", "zeros"])
def test_the_largest_are_those_of_a_stable_sort(length: int, kind: str) -> None:
    vector = torch.randn(length, generator=draw()) * (0.0 if kind == "zeros" else 1.0)
    vector = vector.round() if kind == "ties" else vector
    for k in {1, length // 100 or 1, length - 1}:
        assert set(largest(vector, k).tolist()) == set(torch.argsort(-vector.abs(), stable=True)[:k].tolist())


def test_draws_are_uniform_and_those_of_a_vector_do_not_go_together() -> None:
    drawn = torch.stack([uniform(torch.zeros(8), draw(key)) for key in range(4000)])
    assert drawn.min() > 0 and drawn.max() < 1
    np.testing.assert_allclose(drawn.mean(0), 0.5, atol=5 * (1 / 12 / 4000) ** 0.5)
    np.testing.assert_allclose(torch.corrcoef(drawn.T), np.eye(8), atol=5 / 4000**0.5)


def test_the_largest_of_each_layer() -> None:
    size = Size.dense(((2,), (3,)))
    transform = TopNumbers(k=1, per="layer")
    found = transform.send(torch.tensor([3.0, 4.0, 0.1, 0.0, -0.2]), {}, UplinkPoint(size, draw()))
    assert found.vector.tolist() == approx([0, 4, 0, 0, -0.2]) and transform.size(size)[1:] == (2, 32, 1 + 2)


def test_low_rank_factors_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LowRankFactors, "_factors", lambda *_: 4)  # so that a layer as small as this is cut, too
    chain = Channel("uplink", {0: LowRankFactors(rank=1, memory="none")}, ((2, 2),))
    matrix, start = torch.tensor([1.0, 2.0, 3.0, 4.0]), {0: {"factors": torch.tensor([1.0, 0.0])}}
    one = chain(matrix, start, draw)
    assert one.vector.tolist() == approx([1, 1.4, 3, 4.2])
    assert one.kept[0]["factors"].tolist() == approx([3.162278, 4.427189])
    again = chain(matrix, one.kept, draw).vector
    assert again.tolist() == approx([1.272398, 1.805430, 2.879638, 4.085973], abs=1e-5)
    best = float(torch.linalg.svdvals(matrix.view(2, 2))[1])
    assert [float((matrix - again).norm()), best] == approx([0.365974, 0.365966], abs=1e-6)
    other = torch.tensor([0.0, 1.0, 1.0, 0.0])
    alone = (one.vector + chain(other, start, draw).vector) / 2
    assert alone.tolist() == approx([0.5, 0.7, 2, 2.1])  # each client with its own factors
    together = chain((matrix + other) / 2, start, draw).vector
    assert together.tolist() == approx([0.5, 0.558824, 2, 2.235294], abs=1e-6)  # as in a data centre
    p, q = LowRankFactors(rank=2).factored(matrix.view(2, 2), torch.tensor([[1.0, 2.0], [0.5, -1.0]]))
    torch.testing.assert_close(p @ q.T, matrix.view(2, 2))  # nothing is cut off at the full rank


def test_low_rank_sends_vectors_and_small_layers_as_they_are_and_goes_on_from_its_factors() -> None:
    shapes = ((8, 3, 2), (8,), (2, 2))
    transform = LowRankFactors(rank=1, memory="none")
    left, right = torch.randn(8, 1, generator=draw(1)), torch.randn(1, 6, generator=draw(2))
    vector = torch.cat([(left @ right).flatten(), torch.randn(12, generator=draw(3))])
    point = UplinkPoint(Size.dense(shapes), draw())
    found = transform.send(vector, {}, point)
    torch.testing.assert_close(found.vector, vector)  # a layer of that rank, to rounding
    assert torch.equal(found.vector[48:], vector[48:]) and found.kept["factors"].shape == (6,)
    again = transform.send(vector, found.kept, UplinkPoint(Size.dense(shapes), draw(9)))
    assert torch.equal(again.vector, transform.send(vector, found.kept, point).vector)
    assert transform.size(point.size) == Size(shapes, 8 + 6 + 12)
    zeros = transform.send(torch.zeros(60), {}, point)
    torch.testing.assert_close(transform.send(vector, zeros.kept, point).vector, vector)


@pytest.mark.parametrize(
    ("transforms", "bytes_"),
    [
        ([], 796_840),
        ([TopNumbers(share=0.01, index="int32")], 15_936),
        ([TopNumbers(share=0.01)], 12_450),
        ([TopNumbers(share=0.01, index="bitmap")], 32_870),
        ([TopNumbers(share=0.01, index="golomb")], 7968 + math.ceil(1992 * 8.107987 / 8)),
        ([TopNumbers(share=0.1, index="int32")], 159_368),
        ([TopNumbers(share=0.1)], 124_507),
        ([TopNumbers(share=0.1, index="bitmap")], 104_586),
        ([TopNumbers(share=1.0)], 796_840),
        ([Quantise()], 199_214),
        ([Quantise(block="layer")], 199_218),
        ([Quantise(block=1000)], 199_210 + 4 * 200),
        ([QSGD()], 4 + 199_210 * 9 // 8 + 1),
        ([QSGD(levels=1)], 4 + 49_803),
        ([Ternary()], 4 + 49_803),
        ([TopNumbers(share=0.01), Quantise(), NormBound(max=1.0)], 1992 + 4 + 1992 * 18 // 8),
        ([TopNumbers(share=0.01), Sign()], (1992 * 19 + 32) // 8),
        ([RandomNumbers(k=1000), Half()], 2008),
        ([RandomNumbers(k=1000, shared=True), Half()], 2000),
        ([Sign()], 24_902 + 4),  # 24,901.25 bytes of signs
        ([Sign(scale="none", memory="ef14")], 24_902),
        ([LowRankFactors(rank=2)], 4 * (2 * (199 + 1000) + 210)),
    ],
)
def test_sizes(transforms: list[Uplink], bytes_: int) -> None:
    """A vector of 199,210 numbers takes so many bytes after these transforms."""
    size = Size.dense(((199, 1000), (210,)))
    for transform in transforms:
        size = transform.size(size)
    assert size.bytes == bytes_


def test_sizes_of_short_vectors() -> None:
    for transform, length, bits in ((QSGD(levels=1), 4, 40), (Quantise(), 3, 56), (Quantise(bits=4), 3, 44)):
        assert transform.size(Size.dense(((length,),))).bits == bits
    assert golomb_bits(0.01) == approx(8.107910, abs=1e-6) and golomb_bits(0.1) == approx(4.755825, abs=1e-6)


def test_elias_codes() -> None:
    """Codes of 1, 2 and 3, 4 to 7, 8 to 15 and 16; and a scale, signs, gaps of 1 and levels of (5.12, -5.12, 0, 0)."""
    assert [elias_bits(torch.tensor([n])) for n in (1, 2, 3, 4, 7, 8, 15, 16)] == [1, 3, 3, 6, 6, 7, 7, 11]
    found = {tuple(one.vector.sign().tolist()): one.logged["elias_bytes"] for one in map(coded, range(200))}
    assert found[1, -1, 0, 0] == math.ceil((32 + 2 + 2 + 2) / 8) and found[0, 0, 0, -1] == math.ceil(
        (32 + 1 + 6 + 1) / 8
    )


def coded(key: int) -> Decoded:
    return QSGD(levels=1).send(torch.tensor(U), {}, UplinkPoint(Size.dense(((4,),)), draw(key)))


FOUR = [U, [0, -1, 2, 1], [1, 1, 1, 1]]


@pytest.mark.parametrize(
    ("transforms", "vectors", "expected", "memory"),
    [
        (
            [TopNumbers(k=2, memory="ef14")],
            [U] * 5,
            [[3, 0, 0, -4]] * 3 + [[0, -4, 0, -4], [6, 0, 0, -4]],
            [0, -1, 2.5, 0],
        ),
        ([TopNumbers(k=1, memory="ef14")], FOUR, None, [1, -1, 0, 2]),
        ([TopNumbers(k=1, memory="ef14")], [[1, 3]], [[0, 3]], [1, 0]),
        ([TopNumbers(k=1, memory="ef14")], [[5, -1]], [[5, 0]], [0, -1]),
        ([TopNumbers(k=2, memory="ef14", decay=0.5)], [U] * 2, [[3, 0, 0, -4]] * 2, [0, -1.5, 0.75, 0]),
        ([TopNumbers(k=2, memory="ef21")], [U] * 2, [[3, 0, 0, -4], U], U),
        ([TopNumbers(k=1, memory="ef21")], FOUR, [[0, 0, 0, -4], [0, 0, 0, 1], [1, 0, 0, 1]], [1, 0, 0, 1]),
        ([Sign(memory="ef14")], [U], [[2.125, -2.125] * 2], [0.875, 1.125, -1.625, -1.875]),
        ([Sign(memory="ef14")], [U, [0.0] * 4], [[2.125, -2.125] * 2, [1.375, 1.375, -1.375, -1.375]], None),
        # Quantising after top_k is remembered, too.
        ([TopNumbers(k=1, memory="ef14"), Half()], [[1.00390625, 0.5]], [[1.0, 0.0]], [0.00390625, 0.5]),
        ([TopNumbers(k=2, memory="ef21"), Half()], [[1.00390625, 0.5]] * 2, [[1.0, 0.5], [1.00390625, 0.5]], None),
    ],
)
def test_a_memory_adds_what_was_cut_off(transforms: Any, vectors: Any, expected: Any, memory: Any) -> None:
    found, kept = over(transforms, vectors)
    if expected:
        assert found == expected
    if memory is not None:
        assert kept is not None and kept.tolist() == memory
    if transforms[0].memory == "ef14" and transforms[0].decay == 1.0:
        assert kept is not None
        torch.testing.assert_close(torch.tensor(found).sum(0) + kept, torch.tensor(vectors).float().sum(0))


def test_a_memory_covers_codecs_and_no_bound() -> None:
    """Its memory is not of what a bound shortens; a bound before it bounds nothing."""
    kept = {0: {"memory": torch.tensor([2.0, -4.0])}}
    after = through([TopNumbers(k=1, memory="ef14"), NormBound(max=2.0)], [3.0, 4.0], kept)
    assert after.vector.tolist() == [2, 0] and after.kept[0]["memory"].tolist() == [0, 0]
    before = through([NormBound(max=2.0), TopNumbers(k=1, memory="ef14")], [3.0, 4.0], {1: kept[0]})
    assert before.vector.tolist() == approx([3.2, 0])


@pytest.mark.parametrize(
    "transform",
    [TopNumbers(share=1.0, memory=memory) for memory in ("none", "ef14", "ef21")]
    + [RandomNumbers(share=1.0), NormBound(max=1e9), LowRankFactors(rank=4)],
)
def test_what_changes_nothing_returns_what_it_was_given(transform: Uplink) -> None:
    vector, chain = torch.tensor(U), Channel("uplink", {0: transform}, ((2, 2),))
    found = chain(vector, {}, draw)
    assert found.vector is vector
    again = chain(other := torch.tensor([1.0, 2, 3, 4]), found.kept, draw)
    assert again.vector is other


def test_those_that_round_at_random_have_no_bound() -> None:
    assert all(one.stretch(64) is None for one in (QSGD(), Ternary(), Quantise(), Sign(scale="none")))
