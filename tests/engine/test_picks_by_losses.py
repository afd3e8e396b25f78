"""Clients that are picked by their losses, worked out by hand; the timeline waits for what was trained."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Raw, Simulate, digits, override, quadratic

import raysim
from raysim import ScenarioError, parse_scenario
from raysim.world import Candidates, Reports
from raysim.world.policies.losses import Oort, Pisces, PowerOfChoice

BY_LOSSES: dict[str, Raw] = {
    "power_of_choice": {"candidates": 12},
    "oort": {"preferred": 2.0, "explore": 0.5},
    "pisces": {"explore": 0.5},
}
SECONDS = {"name": "log_normal", "median": 3.0, "sigma": 1.0, "unit": "seconds"}


def world(policy: str, **more: Any) -> Raw:
    return {"dispatch": {"per_round": 1, "policy": {"name": policy, **more}}}


def reported(losses: list[float], **more: list[float]) -> Candidates:
    """Clients with one sample each, all idle, in round 9, of whom those with a loss have reported in round 3."""
    reports = Reports.none(len(losses))
    reports.loss[:] = losses
    for name, start in (("round", 3.0), ("duration", 1.0), ("staleness", 0.0)):
        getattr(reports, name)[:] = np.where(reports.known, more.get(name, start), np.nan)
    numbers = np.arange(len(losses))
    return Candidates(numbers, numbers * 0 + 1, numbers * 0, 9, reports)


def drawn(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# --- by hand, through the public path ---------------------------------------------------------------------------------


def test_the_clients_with_the_largest_last_losses_are_picked(simulate: Simulate) -> None:
    """Clients at 4, -6 and 1: the loss of the one that is picked is (x - a)^2 / 2, and then x is halfway to a.

    In some order, each is picked once, because a loss that is not known is infinite. Then the largest last loss counts.
    """
    centers = [4.0, -6.0, 1.0]
    raw = quadratic(centers, "fedavg", world("power_of_choice", candidates=3), rounds=12, local__lr=0.5)
    updates = simulate(raw).pandas("updates").sort_values("dispatched_at")
    clients, losses = updates.client.tolist(), updates.loss_before.tolist()
    assert sorted(clients[:3]) == [0, 1, 2]
    x, last = 0.0, {}
    for place, (client, loss) in enumerate(zip(clients, losses, strict=True)):
        if place >= 3:
            assert client == max(last, key=lambda one: last[one])
        assert loss == pytest.approx((x - centers[client]) ** 2 / 2)
        x, last[client] = (x + centers[client]) / 2, loss


def test_without_exploration_nobody_new_is_picked(simulate: Simulate) -> None:
    """Two of three clients are explored in the first round, and from then on the one with more to learn is picked."""
    raw = quadratic([10.0, -1.0, 2.0], "fedavg", world("pisces", explore_decay=0.0), rounds=8, local__lr=0.25)
    policy = raw["world"]["dispatch"]["policy"] | {"explore": 1.0, "explore_least": 0.0}
    raw["world"]["dispatch"] = {"per_round": 2, "policy": policy}
    updates = simulate(raw).pandas("updates")
    rounds = [sorted(group.client) for _, group in updates.groupby("dispatched_at")]
    assert rounds == [rounds[0]] * 8  # both that are known are picked for their utility, and nobody else is explored
    alone = override(raw, world__dispatch__per_round=1)
    assert simulate(alone).pandas("updates").client.nunique() == 1


# --- formulas ---------------------------------------------------------------------------------------------------------


def test_power_of_choice_prefers_who_has_not_reported_yet() -> None:
    some = reported([3.0, math.nan, math.inf, 7.0])
    assert sorted(PowerOfChoice(candidates=4).pick(some, 2, drawn())) == [1, 2]
    assert sorted(PowerOfChoice(candidates=4).pick(some, 3, drawn())) == [1, 2, 3]


def test_oorts_utility_is_that_of_the_paper() -> None:
    """In round 10, counted from 1: (loss + sqrt(0.1 ln 10 / L)) (T / t)^2, the factor for t = 4 > T = 2 only."""
    some = reported([1.0, 3.0, math.nan], round=[3.0, 8.0, 0.0], duration=[1.0, 4.0, 0.0])
    found = Oort(preferred=2.0).utilities(some)
    bonus = [math.sqrt(0.1 * math.log(10) / since) for since in (4, 9)]
    np.testing.assert_allclose(found[:2], [1 + bonus[0], (3 + bonus[1]) / 4])
    assert math.isnan(found[2])


def test_oort_draws_among_those_above_the_cutoff() -> None:
    """The last of two wanted has 8: those of 7.6 and more are drawn, never those below, and all in some draw."""
    policy = Oort(explore=0.0, explore_least=0.0)
    some = reported([8.0, 1.0, 9.0, 7.9, 2.0], round=[8.0] * 5)
    found = [set(policy.pick(some, 2, drawn(seed))) for seed in range(50)]
    assert set.union(*found) == {0, 2, 3}


def test_so_many_are_explored_as_the_decayed_part_says() -> None:
    """In round 9, 0.8 * 0.9^9 = 0.31 of ten: three or four; with a least part of one half, five."""
    some = reported([5.0] * 20 + [math.nan] * 20)
    explored = [
        sum(client >= 20 for client in Oort(explore=0.8, explore_decay=0.9).pick(some, 10, drawn(s))) for s in range(99)
    ]
    assert set(explored) == {3, 4}
    assert np.mean(explored) == pytest.approx(10 * 0.8 * 0.9**9, abs=0.15)
    halves = Oort(explore=0.8, explore_decay=0.9, explore_least=0.5).pick(some, 10, drawn())
    assert sum(client >= 20 for client in halves) == 5


def test_pisces_discounts_staleness() -> None:
    """6 / (3 + 1)^0.5 = 3 is less than 4."""
    some = reported([6.0, 4.0], staleness=[3.0, 0.0])
    np.testing.assert_allclose(Pisces().utilities(some), [3.0, 4.0])
    assert Pisces().pick(some, 1, drawn()) == [1]


def test_losses_that_are_not_finite_or_zero_can_be_picked_by() -> None:
    for losses in ([0.0] * 4, [math.inf] * 4, [math.inf, 0.0, 1.0, math.nan]):
        for policy in (Oort(), Pisces(), PowerOfChoice(candidates=2)):
            some = reported(losses)
            assert len(set(policy.pick(some, 3, drawn()))) == 3


# --- the timeline -----------------------------------------------------------------------------------------------------


def test_a_pick_follows_from_the_reports_that_have_arrived_by_then(simulate: Simulate) -> None:
    """Without rounds, two of six clients are under way. Once all have reported, the most useful idle one is next."""
    policy = {"name": "pisces", "explore": 1.0, "explore_decay": 1.0}
    asynchronous = {"dispatch": {"concurrency": 2, "policy": policy}, "delay": SECONDS}
    algorithm = {"name": "fedbuff", "buffer": 1, "server_lr": 0.5}
    raw = quadratic([10.0, -1.0, 2.0, -7.0, 5.0, 0.5], algorithm, asynchronous, rounds=60)
    updates = simulate(raw).pandas("updates").sort_values("dispatched_at")
    useful = updates.loss_before / (updates.staleness + 1) ** 0.5
    judged = 0
    for row in updates[updates.dispatched_at > 0].itertuples():
        before = updates[updates.dispatched_at < row.dispatched_at]
        arrived = before[before.arrived_at <= row.dispatched_at].sort_values("arrived_at")
        last = useful[arrived.index].groupby(arrived.client).last()
        away = before[~before.index.isin(arrived.index)].client
        idle = [client for client in range(6) if client not in set(away)]
        if all(client in last for client in idle):
            judged += 1
            assert row.client == last[idle].idxmax()
        else:
            assert row.client not in last
    assert judged > 40


def test_a_dry_run_says_that_it_cannot_know_who_is_picked(tmp_path: Path) -> None:
    made = parse_scenario(digits(world__dispatch__policy="oort"))
    with pytest.raises(ScenarioError, match="must not depend on losses in a dry run, which does not train, got oort"):
        raysim.run(made, out=tmp_path, dry=True)


def test_an_algorithm_that_logs_no_losses_is_told(tmp_path: Path) -> None:
    raw = digits(algorithm="toys:Silent", world__dispatch__policy="oort")
    with pytest.raises(raysim.RunFailed, match="oort needs the losses of clients, and toys:Silent logs no loss_before"):
        raysim.run(raw, out=tmp_path, inline=True)
