"""The laws of noise on sums: how much of it there is, what its draws follow, and what clients are exposed to."""

import math
from collections import Counter, defaultdict
from functools import partial

import torch
from torch import Tensor

from raysim.laws.runs import RUNS, carried_out
from raysim.laws.subject import Broken, Groups, NotTried, Subject
from raysim.parts.rng import torch_seed
from raysim.privacy.exposure import Exposure, epsilon_of
from raysim.privacy.release import Summed
from raysim.terms import Record
from raysim.uplink.uplink import Size, UplinkPoint

NUMBERS, STEPS, STD = 20_000, 4, 0.25


def _keyed(seed: int, *ids: int) -> torch.Generator:
    return torch.Generator().manual_seed(torch_seed(seed, "release", *ids))


def _sum(subject: Subject) -> Tensor:
    found = torch.linspace(-0.1, 0.1, NUMBERS)
    for one in subject.made.transforms:
        found = one.send(found, {}, UplinkPoint(Size.dense(((NUMBERS,),)), _keyed(0))).vector
    return found


def _added(subject: Subject, std: float, seed: int = 0) -> list[Tensor]:
    """Returns what is added to the same sum in each of some steps."""
    kept: Record = {name: torch.zeros(0) for name in subject.made.keeps}
    given, found = _sum(subject), []
    for version in range(1, STEPS + 1):
        before = {name: entry.clone() for name, entry in kept.items()}
        noised, after = subject.made.add(Summed(given, std, 1.0, 1), version, kept, partial(_keyed, seed))
        if any(not torch.equal(kept[name], entry) for name, entry in before.items()):
            raise Broken("draw: must not change in place what the step before kept; return new tensors")
        found.append(noised - given)
        kept = after
    if not torch.equal(given, _sum(subject)):
        raise Broken("add: must not change the sum in place; return another one")
    return found


def no_noise_leaves_the_sum(subject: Subject) -> None:
    """With a standard deviation of 0, a step returns exactly the sum or, if clients send integers, the rounded sum."""
    most = max(float(added.abs().max()) for added in _added(subject, 0.0))
    if most > (1e-6 if subject.made.transforms else 0.0):
        raise Broken(f"add: must leave the sum as it is where the noise has no size, got {most:g} more")


def draws_follow_the_seed_and_the_step(subject: Subject) -> None:
    """Equal seeds and steps give equal noise; another seed or step gives other noise."""
    one, again, other = (_added(subject, STD, seed) for seed in (0, 0, 1))
    for version in range(STEPS):
        if not torch.equal(one[version], again[version]):
            raise Broken("draw: must draw from `normal` only, got other noise when it was called again")
        if torch.equal(one[version], other[version]) or torch.equal(one[version], one[version - 1]):
            raise Broken(f"draw: must draw anew for another seed and step, got the same noise in step {version + 1}")


def noise_is_as_large_as_it_says(subject: Subject) -> None:
    """Its standard deviation is the given one in the first step and, where no noise comes back, in each."""
    steps = _added(subject, STD)
    for version, added in enumerate(steps[: 1 if subject.made.spans_steps else STEPS], start=1):
        if abs(found := float(added.std()) / STD - 1) > 4 / math.sqrt(2 * NUMBERS):
            raise Broken(f"draw: must have a standard deviation of 1, got {1 + found:.3g} times that in step {version}")


def exposure_follows_from_the_timeline(subject: Subject) -> None:
    """What clients are exposed to follows from the steps that used them, and from their weights."""
    told = (found := carried_out(subject.raw)).info.get("privacy")
    if told is None or told["sampling"] != "none" or told["unit"] != "client":
        raise NotTried("the scenario accounts for no client by the steps that use it")
    used = [row for row in found.updates if row["status"] == "used"]
    uses = Counter(client for client, _ in {(row["client"], row["step"]) for row in used})
    if told["largest_uses"] != (most := max(uses.values())):
        raise Broken(f"exposure: must count each step that used a client, {most}, got {told['largest_uses']}")
    largest, squares = defaultdict[int, float](float), defaultdict[int, float](float)
    shares = defaultdict[tuple[int, int], float](float)
    for row in used:
        largest[row["step"]] = max(largest[row["step"]], abs(row["weight"]))
        shares[row["client"], row["step"]] += abs(row["weight"])
    for (client, step), share in shares.items():
        squares[client] += (share / largest[step]) ** 2
    if subject.made.spans_steps:  # of which more than its own uses depends on a client
        return
    mu = math.sqrt(max(squares.values())) / told["multiplier"] / subject.made.sensitivity(Exposure())
    if not math.isclose(told["epsilon"], right := epsilon_of(mu, told["delta"], subject.made.delta_of), rel_tol=1e-6):
        text = f"exposure: must add up squared weights by the largest one, got epsilon {told['epsilon']:.6g}"
        raise Broken(f"{text} instead of {right:.6g}")


RELEASE: Groups = (
    (no_noise_leaves_the_sum,),
    (draws_follow_the_seed_and_the_step, noise_is_as_large_as_it_says),
    *RUNS,
    (exposure_follows_from_the_timeline,),
)
