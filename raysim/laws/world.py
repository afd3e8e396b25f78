"""The laws of the simulated world's parts: delays, distributions, availability, links, staleness, and weights."""

import math
from itertools import pairwise, product
from typing import Any

import numpy as np

from raysim.laws.runs import RUNS
from raysim.laws.subject import Broken, Groups, Subject
from raysim.parts.part import is_number
from raysim.parts.process import isolated
from raysim.parts.rng import Stream, seed_globals
from raysim.world.delay import Cost
from raysim.world.topology import edges_of

CLIENTS, NUMBERS = 8, 2  # the most clients, and the dispatches of each, whose delays are tried
SEEDS = range(6)
COST = Cost(flops=1e9, down_bytes=1_000_000, up_bytes=1_000_000, samples=100.0)
TIMES = [0.0, 0.25, 1.0, 1.5, 7.0, 24.0, 100.3]


# --- delays -----------------------------------------------------------------------------------------------------------


def delays_are_numbers(subject: Subject) -> None:
    """Delays are finite, and at least 0."""
    for client, number in _dispatches(subject):
        _require_number(f"duration, client {client}, dispatch {number}", _duration(subject, client, number))


def delays_are_at_least_the_least(subject: Subject) -> None:
    """No delay is less than `least`."""
    least = subject.made.least
    for client, number in _dispatches(subject):
        if (got := _duration(subject, client, number)) < least:
            text = f"must be at least `least`, {least:g}, got {got:g}; lower `least`"
            raise Broken(f"duration, client {client}, dispatch {number}: {text}")


def delays_follow_their_key(subject: Subject) -> None:
    """The delay of a client's dispatch is the same in any order, and each time that it is asked for."""
    asked = _dispatches(subject)
    first = {key: _duration(subject, *key) for key in asked}
    for client, number in reversed(asked):
        if (got := _duration(subject, client, number)) != first[client, number]:
            text = f"must be the same in any order, {first[client, number]:g}, got {got:g}; draw from the stream given"
            raise Broken(f"duration, client {client}, dispatch {number}: {text}")


def _dispatches(subject: Subject) -> list[tuple[int, int]]:
    """Returns clients and dispatches to ask for: those of a script if it has one."""
    script = getattr(subject.made, "delays", None)
    if isinstance(script, tuple):
        return [(client, number) for client, of_client in enumerate(script) for number in range(len(of_client))]
    clients = min(CLIENTS, subject.clients)
    return [(client, number) for client in range(clients) for number in range(NUMBERS)]


def _duration(subject: Subject, client: int, number: int) -> float:
    duration: float = subject.made.duration(Stream(0, "delay"), client, number, COST)
    return duration


# --- distributions and delays of messages -----------------------------------------------------------------------------


def draws_are_within_bounds(subject: Subject) -> None:
    """Draws are finite, at least 0, and within `bounds`."""
    low, high = subject.made.bounds
    generator = np.random.default_rng(0)
    for draw in (subject.made.draw(generator) for _ in range(200)):
        _require_number("draw", draw)
        if not low <= draw <= high:
            raise Broken(f"draw: must be within `bounds`, {low:g} to {high:g}, got {draw:g}")


def messages_take_time_to_each_target(subject: Subject) -> None:
    """Each message to a neighbour takes a finite time of at least 0, the same each time that it is asked for."""
    one, other = (subject.made.durations(Stream(0, "messages"), 0, 1, (1, 2, 3)) for _ in range(2))
    if len(one) != 3:
        raise Broken(f"durations: must return a delay for each of 3 targets, got {one!r}")
    for delay in one:
        _require_number("durations", delay)
    if one != other:
        raise Broken(f"durations: must be the same for the same message, got {one} and {other}; draw from the stream")


# --- availability -----------------------------------------------------------------------------------------------------


def masks_are_of_all_clients(subject: Subject) -> None:
    """`mask` returns true or false for each client, the same each time that it is asked for."""
    clients = subject.clients
    for time in TIMES:
        one, other = (subject.made.mask(0, clients, time) for _ in range(2))
        if not isinstance(one, np.ndarray) or one.shape != (clients,) or one.dtype != bool:
            raise Broken(f"mask, time {time:g}: must return bool ({clients},), got {one!r}")
        if not np.array_equal(one, other):
            raise Broken(f"mask, time {time:g}: must be the same each time that it is asked for; draw with a key")


def changes_are_foretold(subject: Subject) -> None:
    """Between a time and `next_change` after it, nobody comes or goes."""
    for time in TIMES:
        change = subject.made.next_change(time)
        if not change > time:
            raise Broken(f"next_change, time {time:g}: must be later, got {change:g}")
        end = min(change, time + 1000)
        for share, seed in product((0.1, 0.5, 0.99), SEEDS):
            between = time + share * (end - time)
            one, other = (subject.made.mask(seed, subject.clients, moment) for moment in (time, between))
            if not np.array_equal(one, other):
                text = f"must say {between:g} or less, when the mask changes, got {change:g}"
                raise Broken(f"next_change, time {time:g}: {text}")


def everybody_comes(subject: Subject) -> None:
    """Every client is there at some time."""
    seen, time = np.zeros(subject.clients, dtype=bool), 0.0
    for _ in range(2000):
        seen |= subject.made.mask(0, subject.clients, time)
        time = subject.made.next_change(time)
        if seen.all() or time == math.inf:
            break
    if not seen.all():
        raise Broken(f"mask: must be true for each client at some time, is never for {np.flatnonzero(~seen).tolist()}")


# --- links ------------------------------------------------------------------------------------------------------------


def links_change_when_they_say(subject: Subject) -> None:
    """`up` returns true or false for each edge, the same each time, and the same until `next_change`."""
    assert subject.scenario.topology is not None
    graph = edges_of(subject.scenario.topology, subject.clients, 0, 0)
    for time in TIMES:
        change = subject.made.next_change(time)
        if not change > time:
            raise Broken(f"next_change, time {time:g}: must be later, got {change:g}")
        up = subject.made.up(graph, time)
        if not isinstance(up, np.ndarray) or up.shape != graph.source.shape or up.dtype != bool:
            raise Broken(f"up, time {time:g}: must return bool ({len(graph.source)},), got {up!r}")
        for moment in (time, (time + min(change, time + 1000)) / 2):
            if not np.array_equal(up, subject.made.up(graph, moment)):
                raise Broken(f"up: must stay until `next_change`, {change:g}, but differs at {time:g} and {moment:g}")


# --- staleness --------------------------------------------------------------------------------------------------------


def factors_are_fractions(subject: Subject) -> None:
    """S(s) is between 0 and 1 for any staleness, and the same each time."""
    for staleness in (0.0, 0.5, 1.0, 10.0, 1000.0):
        one, other = subject.made(staleness), subject.made(staleness)
        if not 0 <= one <= 1 or one != other:
            raise Broken(f"S({staleness:g}): must be between 0 and 1, and the same each time, got {one!r}, {other!r}")


def factors_do_not_grow(subject: Subject) -> None:
    """S(s) does not grow with the staleness s."""
    values = [subject.made(staleness) for staleness in np.arange(0, 50, 0.5).tolist()]
    if any(later > earlier for earlier, later in pairwise(values)):
        raise Broken("S(s): must not grow with s, but does")


# --- topologies and weights of mixing ---------------------------------------------------------------------------------


def the_same_seed_gives_the_same_graph(subject: Subject) -> None:
    """A seed decides the graph, whatever the global generators hold."""
    edges = []
    for seed in (1, 2):
        with isolated():
            seed_globals(seed, "graph")  # so that draws from the global generators show
            graph: Any = subject.made.graph(subject.clients, np.random.default_rng(0))
        edges.append(sorted(map(sorted, graph.edges)))
    if edges[0] != edges[1]:
        raise Broken("graph: must be the same for the same generator, and differs; draw from the generator given")


def weights_follow_degrees(subject: Subject) -> None:
    """The weights of any pair of degrees are at least 0, and never let a peer give away more than all."""
    for own, other in product(range(1, 8), repeat=2):
        weight = subject.made.weight(own, other, 7)
        if not 0 <= own * weight <= 1 + 1e-9:
            text = f"must be between 0 and 1 / {own}, got {weight!r}"
            raise Broken(f"weight, a peer with {own} neighbours and one with {other}: {text}")


def _require_number(where: str, value: Any) -> None:
    if not is_number(value) or not 0 <= float(value) < math.inf:
        raise Broken(f"{where}: must be a finite number of at least 0, got {value!r}")


DELAY: Groups = ((delays_are_numbers,), (delays_are_at_least_the_least, delays_follow_their_key), *RUNS)
DISTRIBUTION: Groups = ((draws_are_within_bounds,), *RUNS)
EDGE_DELAY: Groups = ((draws_are_within_bounds, messages_take_time_to_each_target), *RUNS)
AVAILABILITY: Groups = ((masks_are_of_all_clients,), (changes_are_foretold, everybody_comes), *RUNS)
LINKS: Groups = ((links_change_when_they_say,), *RUNS)
TOPOLOGY: Groups = (RUNS[0], (the_same_seed_gives_the_same_graph,), *RUNS[1:])
WEIGHTS: Groups = ((weights_follow_degrees,), *RUNS)
STALENESS: Groups = ((factors_are_fractions, factors_do_not_grow), *RUNS)
