"""Laws of virtual time: no model, no data, only who is picked when, arrives, is used or lost."""

import math
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from conftest import Raw, computed
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.algorithms import Buffer, Round, Trigger
from raysim.world import Cost, World
from raysim.world.clock import Horizon
from raysim.world.server_happening import Closed, Dispatched, Ended, Happening, Stepped
from raysim.world.server_timeline import ServerTimeline


def world(**blocks: Any) -> World:
    return World.model_validate(blocks)


def happen(world: World, trigger: Trigger, rounds: int, clients: int = 500, seed: int = 0) -> list[Happening]:
    return list(ServerTimeline(world, trigger, np.full(clients, 3), Horizon(rounds), seed))


def dispatches(happenings: list[Happening]) -> list[Dispatched]:
    """All that are known to have ended, in the order of their serial numbers."""
    used = [member for h in happenings if isinstance(h, Stepped) for member in h.members]
    return sorted(used + [h.dispatched for h in happenings if isinstance(h, Ended)])


def steps(happenings: list[Happening]) -> list[Stepped]:
    return [h for h in happenings if isinstance(h, Stepped)]


def ended(happenings: list[Happening]) -> Counter[str]:
    return Counter(h.status for h in happenings if isinstance(h, Ended))


FEDDLE = {"dispatch": {"per_round": 10}, "delay": {"name": "half_normal", "sigma": 20.0}}


def test_the_scripted_rounds_of_feddle() -> None:
    """Arrivals: r0 {0}; r1 {2, 3}; r2 {1 (s = 2), 2 (s = 0)}."""
    scripted = {"name": "scripted", "delays": ((0.0, 1.0), (2.0,), (0.0, 0.0), (0.0,))}
    happenings = happen(
        world(dispatch={"picks": ((0, 1), (2, 3), (0, 2))}, delay=scripted, staleness="rounds"), Buffer(1), 3, 4
    )
    arrived = [(s.round, s.arrivals[0].client, s.arrivals[0].staleness) for s in steps(happenings)]
    assert arrived == [(0, 0, 0.0), (1, 2, 0.0), (1, 3, 0.0), (2, 1, 2.0), (2, 2, 0.0)]


@pytest.mark.parametrize("late", ["discard", "keep"])
def test_a_round_may_end_with_the_first_reports(late: Any) -> None:
    """The first two of three report after 1 and 2 s; one of one after another; then nobody is picked, and one comes."""
    scripted = {"name": "scripted", "delays": ((1.0,), (2.0,), (5.0,), (1.0,)), "unit": "seconds"}
    picks = ((0, 1, 2), (3,), ())
    happenings = happen(world(dispatch={"picks": picks, "reports": 2}, delay=scripted), Round(late), 3, 4)
    assert [h.time for h in happenings if isinstance(h, Closed)] == [2.0, 3.0, 5.0]
    used = [[member.client for member in step.members] for step in steps(happenings)]
    assert used == ([[0, 1], [3]] if late == "discard" else [[0, 1], [3], [2]])
    assert [(h.dispatched.client, h.status, h.time) for h in happenings if isinstance(h, Ended)] == (
        [(2, "discarded", 5.0)] if late == "discard" else []
    )


@pytest.mark.parametrize(
    ("dispatch", "unit", "text"),
    [
        ({"per_round": 5, "reports": 6}, "seconds", "reports must be at most per_round, 5, got 6"),
        ({"per_round": 5, "reports": 3, "round_s": 1.0}, "seconds", "reports goes with per_round or picks"),
        ({"concurrency": 5, "reports": 3}, "seconds", "reports goes with per_round or picks"),
        ({"per_round": 5, "reports": 3}, "rounds", "dispatch.reports needs a delay in seconds"),
    ],
)
def test_reports_that_no_round_can_wait_for_are_refused(dispatch: Any, unit: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        world(dispatch=dispatch, delay={"name": "half_normal", "sigma": 1.0, "unit": unit})


@pytest.mark.parametrize(("unit", "staleness"), [("rounds", (1.0, 4.0)), ("versions", (1.0, 1.0))])
def test_an_update_left_in_the_buffer_has_the_staleness_of_its_arrival(unit: str, staleness: tuple[float, ...]) -> None:
    """Clients 0 and 1 make a step in round 0. Client 2 arrives in round 1 and waits; client 3 never arrives."""
    scripted = {"name": "scripted", "delays": ((0.0,), (0.0,), (1.0,), (9.0,))}
    of_run = world(dispatch={"picks": ((0, 1, 2, 3), (), (), ())}, delay=scripted, staleness=unit)
    ends = [h for h in happen(of_run, Buffer(2), 4, 4) if isinstance(h, Ended)]
    assert [(h.dispatched.client, h.status) for h in ends] == [(2, "unfinished"), (3, "unfinished")]
    assert tuple(h.staleness for h in ends) == staleness


@pytest.mark.parametrize(("trigger", "unit"), [(Buffer(2), "versions"), (Round("keep"), "rounds")])
def test_staleness_is_counted_as_the_papers_of_the_algorithms_do(trigger: Any, unit: str) -> None:
    """FedBuff, FedAsync, Port, CA2FL and FADAS count server steps."""
    delay = {"name": "half_normal", "sigma": 4.0}
    by_default = happen(world(dispatch={"per_round": 10}, delay=delay), trigger, 60, 30)
    assert by_default == happen(world(dispatch={"per_round": 10}, delay=delay, staleness=unit), trigger, 60, 30)
    if trigger == Buffer(2):  # one step a round makes both units equal
        assert by_default != happen(world(dispatch={"per_round": 10}, delay=delay, staleness="rounds"), trigger, 60, 30)


@pytest.mark.parametrize(
    ("picks", "message"),
    [
        (((0,), (0,)), "round 1 must pick idle clients, got 0, which is under way"),
        (((), (2,)), "round 1 must pick clients with samples to train on, got 2, which has none"),
    ],
)
def test_a_script_must_pick_who_can_be_picked(picks: tuple[tuple[int, ...], ...], message: str) -> None:
    scripted = {"name": "scripted", "delays": ((2.0, 0.0), (0.0, 0.0))}
    timeline = ServerTimeline(
        world(dispatch={"picks": picks}, delay=scripted), Buffer(1), np.array([1, 1, 0]), Horizon(len(picks)), 0
    )
    with pytest.raises(ValueError, match=message):
        list(timeline)


@pytest.mark.parametrize("dispatch", [{"per_round": 10}, {"concurrency": 50}])
@pytest.mark.parametrize("unit", ["rounds", "seconds"])
def test_nobody_is_in_flight_twice(dispatch: dict[str, int], unit: str) -> None:
    delay = {"name": "exponential", "mean": 3.0, "unit": unit}
    happenings = happen(world(dispatch=dispatch, delay=delay), Buffer(5), 60, 60)
    flights: dict[int, list[tuple[float, float]]] = {}
    for step in steps(happenings):
        for member in step.members:
            flights.setdefault(member.client, []).append((member.time, member.arrives))
    for intervals in flights.values():
        intervals.sort()
        assert all(end <= start for (_, end), (start, _) in pairwise(intervals))


def test_on_time_arrivals_are_as_rare_as_the_half_normal_says() -> None:
    """P(|N(0, sigma^2)| < 1) = erf(1 / (sigma sqrt 2)), 0.0399 at sigma 20: 798 of 20,000, up to 4 deviations."""
    happenings = happen(world(**FEDDLE), Round("discard"), 2000)
    used = sum(len(step.members) for step in steps(happenings))
    expected = 20_000 * math.erf(1 / (20 * math.sqrt(2)))
    assert abs(used - expected) < 4 * math.sqrt(expected)


@pytest.mark.parametrize("trigger", [Round("discard"), Round("keep"), Buffer(7)])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_every_dispatch_ends_once(trigger: Trigger, dropout: float) -> None:
    timeline = ServerTimeline(
        world(**FEDDLE, dropout={"probability": dropout}), trigger, np.full(300, 2), Horizon(100), seed=1
    )
    happenings = list(timeline)
    used = [m.serial for s in steps(happenings) for m in s.members]
    lost = [h.dispatched.serial for h in happenings if isinstance(h, Ended)]
    assert sorted(used + lost) == list(range(1000))
    assert (ended(happenings)["dropped"] > 0) == (dropout > 0)
    assert not timeline.live


def test_updates_that_cannot_matter_hold_no_model_version() -> None:
    """Under FedAvg at sigma 20, only what arrives in time may be used, and that is known at dispatch."""
    timeline = ServerTimeline(world(**FEDDLE), Round("discard"), np.full(500, 3), Horizon(100), seed=0)
    assert max(len(timeline.live) for _ in timeline) <= 1


def test_staleness_counts_rounds_or_versions() -> None:
    for unit in ("rounds", "versions"):
        for step in steps(happen(world(**FEDDLE, staleness=unit), Buffer(1), 50)):
            (arrival,) = step.arrivals
            now = step.round if unit == "rounds" else step.version - 1
            then = arrival.round if unit == "rounds" else arrival.version
            assert arrival.staleness == now - then


def test_concurrency_keeps_so_many_in_flight() -> None:
    delay = {"name": "exponential", "mean": 3.0, "unit": "seconds"}
    happenings = happen(world(dispatch={"concurrency": 40}, delay=delay), Buffer(10), 50, 100)
    assert {h.in_flight for h in happenings if isinstance(h, Stepped)} == {39}  # the next pick follows the step
    assert len(steps(happenings)) == 50
    assert [h.round for h in happenings if isinstance(h, Closed)] == list(range(50))


def test_a_round_in_seconds_lasts_until_its_last_arrival() -> None:
    delay = {"name": "uniform", "low": 1.0, "high": 3.0, "unit": "seconds"}
    happenings = happen(world(dispatch={"per_round": 5}, delay=delay), Round("discard"), 10, 50)
    for step in steps(happenings):
        assert len(step.members) == 5
        assert step.time == max(m.arrives for m in step.members)
    assert not ended(happenings)


def test_a_round_of_fixed_length_leaves_late_ones_out() -> None:
    delay = {"name": "uniform", "low": 1.0, "high": 3.0, "unit": "seconds"}
    happenings = happen(world(dispatch={"per_round": 5, "round_s": 2.0}, delay=delay), Round("discard"), 40, 50)
    assert all(m.arrives < m.time + 2.0 for s in steps(happenings) for m in s.members)
    assert ended(happenings)["discarded"] > 50
    assert [h.time for h in happenings if isinstance(h, Closed)] == [2.0 * (k + 1) for k in range(40)]


def test_a_clients_own_delay_stays_the_same() -> None:
    delay = {"name": "log_normal", "median": 2.0, "sigma": 1.0, "redraw": "client"}
    happenings = happen(world(dispatch={"per_round": 5}, delay=delay), Buffer(1), 60, 20)
    durations: dict[int, set[float]] = {}
    for step in steps(happenings):
        durations.setdefault(step.members[0].client, set()).add(step.members[0].arrives - step.members[0].time)
    assert all(len(of_client) == 1 for of_client in durations.values())
    assert all(duration == int(duration) for of_client in durations.values() for duration in of_client)


def test_delays_do_not_depend_on_the_algorithm() -> None:
    """A client's first dispatch takes as long under any trigger: comparisons are paired."""

    def first(trigger: Trigger) -> dict[int, float]:
        found: dict[int, float] = {}
        for happening in happen(world(**FEDDLE), trigger, 30):
            members = happening.members if isinstance(happening, Stepped) else ()
            members += (happening.dispatched,) if isinstance(happening, Ended) else ()
            found |= {m.client: m.arrives - m.time for m in members if m.number == 0}
        return found

    one, other = first(Buffer(10)), first(Round("discard"))
    assert len(one.keys() & other.keys()) > 100
    assert all(one[client] == other[client] for client in one.keys() & other.keys())


def test_work_sets_the_time() -> None:
    """10 FLOP at 2 FLOP/s, 8 bytes up at 4 and 6 down at 3 bytes/s, and half a second: 5 + 2 + 2 + 0.5."""
    one = world(dispatch={"concurrency": 1}, delay=computed(2.0, 4.0, 3.0, latency_s=0.5))
    timeline = ServerTimeline(one, Buffer(1), np.ones(1, int), Horizon(3), 0, lambda *_: Cost(10.0, 6, 8, 3))
    assert [s.time for s in timeline if isinstance(s, Stepped)] == pytest.approx([9.5, 19.0, 28.5])


def test_only_available_clients_are_picked() -> None:
    day = {"name": "periodic", "period": 24.0, "on": 0.5, "slot": 1.0}
    one = world(dispatch={"per_round": 20}, availability=day)
    there = [one.availability.mask(0, 100, float(k)) for k in range(48)]
    assert all(0.3 < mask.mean() < 0.7 for mask in there)
    for step in steps(happen(one, Round(), 48, 100)):
        assert all(there[step.round][m.client] for m in step.members)


def test_time_goes_on_where_nobody_is_there() -> None:
    """A single client that is there in a tenth of the slots: the world waits for it."""
    rare = {"name": "random", "probability": 0.1}
    delay = {"name": "constant", "value": 0.5, "unit": "seconds"}
    found = steps(happen(world(dispatch={"concurrency": 1}, delay=delay, availability=rare), Buffer(1), 5, 1))
    assert len(found) == 5
    assert found[-1].time > 5


@pytest.mark.parametrize(
    "availability", [{"name": "random", "probability": 0.3}, {"name": "periodic", "period": 40.0, "on": 0.3}]
)
def test_concurrency_is_kept_whoever_is_there(availability: Raw) -> None:
    """In every slot, once it has begun, either enough are in flight, or everybody who is there is."""
    delay = {"name": "exponential", "mean": 30.0, "unit": "seconds"}
    availability["slot"] = 5.0
    one, clients = world(dispatch={"concurrency": 20}, delay=delay, availability=availability), 40
    flights = dispatches(happen(one, Buffer(5), 60, clients))
    end = max(flight.time for flight in flights)
    for slot in np.arange(0.0, end, 5.0):
        flying = {f.client for f in flights if f.time <= slot < f.arrives}
        there = set(np.flatnonzero(one.availability.mask(0, clients, slot)).tolist())
        assert len(flying) == 20 or there <= flying
    assert any(flight.time > 0 and flight.time % 5.0 == 0 for flight in flights)


def test_empty_rounds_that_last_until_the_last_arrival() -> None:
    """They wait for the next slot, or take no time where everybody is there always."""
    seconds: Raw = {"name": "constant", "value": 0.25, "unit": "seconds"}
    scripted = {"dispatch": {"picks": ((), (0,), ())}, "delay": seconds}
    closed = [h.time for h in happen(world(**scripted), Round(), 3, 1) if isinstance(h, Closed)]
    assert closed == [0.0, 0.25, 0.25]
    slots = {"name": "random", "probability": 0.5, "slot": 2.0}
    drawn = world(dispatch={"per_round": 1}, delay=seconds, availability=slots)
    assert [drawn.availability.mask(0, 1, slot).item() for slot in (0.0, 2.0)] == [False, True]
    closed = [h.time for h in happen(drawn, Round(), 3, 1) if isinstance(h, Closed)]
    assert closed == [2.0, 2.25, 2.5]


def test_permanent_dropouts_never_come_back() -> None:
    gone = {"probability": 1.0, "permanent": True}
    happenings = happen(world(dispatch={"per_round": 3}, dropout=gone), Buffer(1), 20, 12)
    assert ended(happenings) == {"dropped": 12}
    delay = {"name": "constant", "value": 1.0, "unit": "seconds"}
    happenings = happen(world(dispatch={"concurrency": 3}, delay=delay, dropout=gone), Buffer(1), 20, 12)
    assert ended(happenings) == {"dropped": 12}


def test_clients_without_samples_are_never_picked() -> None:
    samples = np.array([0, 1, 0, 2, 3])
    timeline = ServerTimeline(world(dispatch={"per_round": 5}), Round(), samples, Horizon(3), seed=0)
    assert {m.client for s in timeline if isinstance(s, Stepped) for m in s.members} == {1, 3, 4}


def test_an_empty_round_is_no_step_unless_asked_for() -> None:
    scripted = {"dispatch": {"picks": ((), (0,))}}
    assert [s.round for s in steps(happen(world(**scripted), Round(), 2, 1))] == [1]
    assert [s.round for s in steps(happen(world(**scripted), Round(empty=True), 2, 1))] == [0, 1]


@pytest.mark.parametrize("policy", ["uniform", "by_samples"])
def test_clients_are_dispatched_in_the_order_in_which_they_were_drawn(policy: str) -> None:
    """So that of updates that arrive at one time no client's always counts last."""
    drawn = world(dispatch={"per_round": 5, "policy": policy})
    rounds = [[member.client for member in step.members] for step in steps(happen(drawn, Round(), 200, clients=50))]
    assert sum(clients == sorted(clients) for clients in rounds) < 10  # of 200, of which 1 in 120 is so by chance
    last = Counter(clients[-1] > 24 for clients in rounds)
    assert 70 < last[True] < 130


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_arrivals_that_are_replaced_one_by_one_give_the_events_of_all_others(data: st.DataObject) -> None:
    draw = data.draw
    samples = np.array(draw(st.lists(st.integers(0, 3), min_size=2, max_size=40)))
    samples[0] = 1
    delay = draw(
        st.sampled_from([{"name": "log_normal", "median": 5.0, "sigma": 1.0}, {"name": "constant", "value": 2.0}])
    )
    worlds = world(dispatch={"concurrency": draw(st.integers(1, 40))}, delay={**delay, "unit": "seconds"})
    horizon = Horizon(
        rounds=draw(st.integers(1, 60)),
        time=draw(st.sampled_from([math.inf, 20.0])),
        updates=draw(st.sampled_from([math.inf, 50])),
        every_rounds=draw(st.sampled_from([None, 3])),
        versions=draw(st.sampled_from([math.inf, 7])),
    )
    trigger = Buffer(draw(st.integers(1, 9)))
    made = [ServerTimeline(worlds, trigger, samples, horizon, seed=3) for _ in range(2)]
    made[1]._steady = False
    seen = [[(happening, {*timeline.live, timeline.version}) for happening in timeline] for timeline in made]
    assert made[0]._steady
    assert seen[0] == seen[1]
