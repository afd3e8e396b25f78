"""What is wrong with lists of transforms, before anything is run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from raysim.parts.errors import Problem
from raysim.uplink.bounds import NormBound, adapting
from raysim.uplink.chain import chains, groups
from raysim.uplink.low_rank import LowRankFactors
from raysim.uplink.memory import Remembering
from raysim.uplink.uplink import Uplink


def list_problems(key: str, transforms: Sequence[Uplink]) -> Iterator[Problem]:
    """Yields what is wrong with a list of transforms by itself. key: of the list in the scenario."""
    for chain in chains(transforms).values():
        remembering = [place for place, one in chain.items() if one.remembers]
        for place in remembering[1:]:
            text = f"must be none, for {key}.{remembering[0]} has a memory; leave it out"
            yield Problem(f"{key}.{place}.memory", text)
        factors = next((place for place, one in chain.items() if isinstance(one, LowRankFactors)), None)
        for place, one in chain.items():
            if factors is not None and place > factors and one.kind == "codec":
                text = f"must come before {key}.{factors}, for what travels after low_rank are factors; move it up"
                yield Problem(f"{key}.{place}", text)
            if isinstance(one, Remembering) and one.memory == "ef21" and not one.contracts:
                text = "must be none or ef14, for without a scale signs need not come nearer, got ef21; set scale: mean"
                yield Problem(f"{key}.{place}.memory", text)
    bounds = [place for place, one in enumerate(transforms) if isinstance(one, NormBound)]
    if (adapts := adapting(transforms)) is not None and adapts in bounds[:-1]:
        text = "must stand in the last clip_norm alone, whose clipped updates are counted; leave it out"
        yield Problem(f"{key}.{adapts}.adapt", text)


def increment_problems(transforms: Sequence[Uplink], increments: Sequence[str], algorithm: str) -> Iterator[Problem]:
    """Yields which transforms lose a part of what an algorithm sums up for good.

    increments: the names of these entries of its updates.
    """
    for taken, chain in chains(transforms).items():
        if taken and not set(taken) & set(increments):
            continue
        for group in groups(chain):
            head = next(iter(group.values()))
            if head.remembers and getattr(head, "memory", "ef14") == "ef14":
                continue
            for place, one in group.items():
                what = f"{algorithm} sums up the changes that clients send ({', '.join(increments)})"
                cure = "give it memory: ef14" if hasattr(one, "memory") else "take top_k with memory: ef14 before it"
                text = f"{what}, so what {one.name} cuts off would be lost for good; {cure}"
                yield Problem(f"uplink.{place}", text if one.kind == "codec" else f"{what}; leave {one.name} out")
