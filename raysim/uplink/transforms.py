"""All transforms of what clients send, and what is wrong with lists of them. To add one, put it into `UPLINKS`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

from raysim.parts.errors import Problem
from raysim.parts.part import OneOf
from raysim.uplink.channel import by_vector, groups
from raysim.uplink.levels import QSGD, Half, Quantise, Sign, Ternary
from raysim.uplink.noise import GaussianNoise, LaplaceNoise, LocalNoise, NormBound, adapting
from raysim.uplink.sparse import LowRankFactors, RandomNumbers, TopNumbers
from raysim.uplink.uplink import Remembering, Uplink, memory_of

UPLINKS: tuple[type[Uplink], ...] = (
    NormBound,
    GaussianNoise,
    LaplaceNoise,
    TopNumbers,
    RandomNumbers,
    LowRankFactors,
    Half,
    Quantise,
    QSGD,
    Ternary,
    Sign,
)
AnUplink = Annotated[Uplink, OneOf(UPLINKS)]


def list_problems(key: str, transforms: Sequence[Uplink]) -> Iterator[Problem]:
    """Yields what is wrong with a list of transforms by itself. key: of the list in the scenario."""
    for chain in by_vector(transforms).values():
        remembering = [place for place, one in chain.items() if one.remembers]
        for place in remembering[1:]:
            text = f"must be none, because {key}.{remembering[0]} has a memory; leave it out"
            yield Problem(f"{key}.{place}.memory", text)
        factors = next((place for place, one in chain.items() if isinstance(one, LowRankFactors)), None)
        for place, one in chain.items():
            if factors is not None and place > factors and one.kind == "codec":
                text = f"must come before {key}.{factors}, because what travels after low_rank are factors; move it up"
                yield Problem(f"{key}.{place}", text)
            if isinstance(one, Remembering) and one.memory in ("ef21", "shadow") and not one.contracts:
                text = f"must be none or ef14, because signs without a scale need not come nearer, got {one.memory}"
                yield Problem(f"{key}.{place}.memory", f"{text}; set scale: mean")
            if key == "uplink" and memory_of(one) == "shadow":
                yield Problem(f"{key}.{place}.memory", "must be none, ef14 or ef21, got shadow, which is for downlink")
        yield from _noise_problems(key, chain)
    bounds = [place for place, one in enumerate(transforms) if isinstance(one, NormBound)]
    if (adapts := adapting(transforms)) is not None and adapts in bounds[:-1]:
        text = "must stand in the last clip_norm alone, whose clipped updates are counted; leave it out"
        yield Problem(f"{key}.{adapts}.adapt", text)


def _noise_problems(key: str, chain: Mapping[int, Uplink]) -> Iterator[Problem]:
    """Yields which noise does not find the bound that its size follows from."""
    before: Uplink | None = None
    for place, one in chain.items():
        if isinstance(one, LocalNoise) and one.follows_bound:
            fits = isinstance(before, NormBound) and before.order == one.order and not before.adapt
            got = "nothing" if before is None else "another one" if isinstance(before, NormBound) else before.name
            if not fits:
                text = f"must have clip_norm with order: {one.order}, and without adapt, right before it, got {got}"
                yield Problem(f"{key}.{place}", f"{text}; add it, because the noise follows from that bound")
        before = one


def downlink_problems(transforms: Sequence[Uplink]) -> Iterator[Problem]:
    """Yields what is wrong with transforms of the server's message."""
    yield from list_problems("downlink", transforms)
    shadows = [one.shadow for one in transforms if isinstance(one, Remembering) and memory_of(one) == "shadow"]
    covered = {
        place: memory_of(next(iter(group.values()))) == "shadow"
        for chain in by_vector(transforms).values()
        for group in groups(chain)
        for place in group
    }
    for place, one in enumerate(transforms):
        path, text = f"downlink.{place}", ""
        if one.kind != "codec":
            text = f"must be a codec, got {one.name}, which is for uplink; leave it out"
        elif not covered[place] and isinstance(one, Remembering | Ternary):
            cure = "set it" if isinstance(one, Remembering) else "take top_k with that before it"
            text = f"must have memory: shadow, because what {one.name} leaves of a model is not a model; {cure}"
        elif isinstance(one, Remembering) and memory_of(one) == "shadow" and one.shadow != shadows[0]:
            path, text = f"{path}.shadow", f"must be {shadows[0]} as that of the others, got {one.shadow}"
        if text:
            yield Problem(path, text)
        for key in one.schedules if "all" in shadows else ():
            text = "must be a number, because the bytes of all increments are summed up, got a schedule; give one"
            yield Problem(f"downlink.{place}.{key}", text)


def increment_problems(transforms: Sequence[Uplink], increments: Sequence[str], algorithm: str) -> Iterator[Problem]:
    """Yields which transforms lose a part of what an algorithm sums up for good.

    increments: the names of these entries of its updates.
    """
    for taken, chain in by_vector(transforms).items():
        if taken and not set(taken) & set(increments):
            continue
        for group in groups(chain):
            head = next(iter(group.values()))
            if memory_of(head) == "ef14":
                continue
            for place, one in group.items():
                what = f"{algorithm} sums up the changes that clients send ({', '.join(increments)})"
                cure = "give it memory: ef14" if hasattr(one, "memory") else "take top_k with memory: ef14 before it"
                text = f"{what}, so what {one.name} cuts off would be lost for good; {cure}"
                yield Problem(f"uplink.{place}", text if one.kind == "codec" else f"{what}; leave {one.name} out")
