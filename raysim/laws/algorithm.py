"""The laws of algorithms, with a server and without one, on their methods and in runs."""

from __future__ import annotations

import math

import numpy as np

from raysim.algorithms import Central
from raysim.data import federate
from raysim.laws import runs
from raysim.laws.law import Broken, Groups, NotTried
from raysim.laws.peer_calls import PeerCalls
from raysim.laws.records import (
    require_equal_again,
    require_finite,
    require_shapes,
    require_unchanged,
    state_of,
)
from raysim.laws.server_calls import ServerCalls
from raysim.laws.small_scenarios import merged, quadratics
from raysim.laws.subject import Subject
from raysim.parts.errors import ScenarioError
from raysim.scenario import parse_scenario

# Of 60 clients with two or three samples each, about a third lose all of them to the server.
SPARSE = {"data": {"clients": 60}, "server_data": {"name": "in_domain", "samples": 100, "split": "train"}}


def made_by(subject: Subject) -> ServerCalls | PeerCalls:
    """Returns the calls of all methods, which are made once."""
    known = vars(subject)
    if "_calls" not in known:
        known["_calls"] = (ServerCalls if subject.scenario.has_server else PeerCalls)(subject)
    found: ServerCalls | PeerCalls = known["_calls"]
    return found


def methods_return_records(subject: Subject) -> None:
    """Its methods can be called, and return records, which are dicts of tensors."""
    made_by(subject)


def nothing_is_changed_in_place(subject: Subject) -> None:
    """It changes nothing in place that it is given: messages, states, sums of updates."""
    require_unchanged(made_by(subject).calls.of())


def equal_arguments_give_equal_results(subject: Subject) -> None:
    """Equal arguments give equal results: nothing is drawn without a key, or kept outside of the states."""
    require_equal_again(made_by(subject).calls.of())


def what_it_returns_is_finite(subject: Subject) -> None:
    """All numbers that it returns are finite."""
    require_finite(made_by(subject).calls.of())


def clients_states_keep_their_shapes(subject: Subject) -> None:
    """A client's state keeps its entries, with their shapes and types."""
    calls = made_by(subject).calls
    (first, *_) = calls.of("client")
    for call in calls.of("update"):
        require_shapes(call.where, call.returned[1], first.returned[0], "the client's state")
    for call in calls.of("adapt"):
        require_shapes(call.where, call.returned[0], first.returned[0], "the client's state")


def the_servers_state_keeps_its_shapes(subject: Subject) -> None:
    """The server's state keeps its entries, with their shapes and types; those that are empty at first may grow."""
    made = made_by(subject)
    assert isinstance(made, ServerCalls)
    for call in made.calls.of("step"):
        require_shapes(call.where, state_of(call.returned[0]), made.first, "the server's state", grows=True)


def the_servers_messages_keep_their_entries(subject: Subject) -> None:
    """What clients are sent has the same entries in every version of the model."""
    first, *others = made_by(subject).calls.of("message")
    for call in others:
        if call.returned[0].keys() != first.returned[0].keys():
            must = f"must return the entries of the first message, {sorted(first.returned[0])}"
            raise Broken(f"{call.where}: {must}, got {sorted(call.returned[0])}")


def peers_states_keep_their_shapes(subject: Subject) -> None:
    """A peer's state keeps its entries, with their shapes and types."""
    made = made_by(subject)
    assert isinstance(made, PeerCalls)
    for call in made.calls.of("mix"):
        require_shapes(call.where, call.returned[0], made.first[0], "the peer's state")


def updates_are_alike(subject: Subject) -> None:
    """All updates have the same entries, shapes and types, for they are summed."""
    first, *others = made_by(subject).calls.of("update")
    for call in others:
        require_shapes(call.where, call.returned[0], first.returned[0], "the update")


def messages_are_alike(subject: Subject) -> None:
    """All messages have the same entries, shapes and types, for they are mixed."""
    first, *others = made_by(subject).calls.of("local")
    for call in others:
        require_shapes(call.where, call.returned[1], first.returned[1], "the message")


def weights_are_numbers(subject: Subject) -> None:
    """`weigh` gives a finite weight for each update, or None."""
    made = made_by(subject)
    assert isinstance(made, ServerCalls)
    for where, weights, updates in made.weights:
        if weights is not None and len(weights) != updates:
            raise Broken(f"{where}: must return a weight for each of {updates} updates, got {len(weights)}")
        if weights is not None and not all(math.isfinite(weight) for weight in weights):
            raise Broken(f"{where}: weights must be finite, got {weights}")


def samples_seen_are_counted(subject: Subject) -> None:
    """`samples_seen` says for how many samples a client or peer computes gradients, at least 0."""
    if not (seen := subject.scenario.algorithm.samples_seen(subject.scenario.local, 10)) >= 0:
        raise Broken(f"{subject.name}: `samples_seen` must be at least 0, got {seen!r} for a client of 10 samples")


def samples_seen_are_foreseen(subject: Subject) -> None:
    """`samples_seen` is what `update` or `local` computes gradients for, unless clients stop early."""
    made, algorithm = made_by(subject), subject.scenario.algorithm
    if isinstance(algorithm, Central) and algorithm.stops_early:
        raise NotTried("clients stop early, so delays follow what they did")
    for where, samples, seen in made.seen:
        if (foreseen := algorithm.samples_seen(subject.scenario.local, samples)) != seen:
            text = f"must compute gradients for the {foreseen} samples that `samples_seen` says, got {seen}"
            raise Broken(f"{where}: {text}; correct `samples_seen`, or computed delays are wrong")


def it_comes_nearer_on_quadratics(subject: Subject) -> None:
    """On quadratics that all have one optimum, it comes nearer to it, however short its steps are."""
    raw = quadratics(subject.part, subject.block)
    try:
        parse_scenario(raw)
    except ScenarioError as error:
        raise NotTried(f"it does not go with quadratics: {error.problems[0]}") from error
    made = made_by(subject)
    if isinstance(made, ServerCalls) and not any(call.returned[0] for call in made.calls.of("message")):
        raise NotTried("clients are sent nothing, so the server's model is not theirs")
    try:
        ended = runs.carried_out(raw)
    except Broken as error:
        hint = "an algorithm that cannot train on the data set quadratic says so in its `problems`"
        raise Broken(f"{error}; {hint}") from error
    models, optimum = np.atleast_2d(ended.vectors["w"]), np.array(raw["data"]["centers"][0])
    left = float(np.linalg.norm(models - optimum, axis=1).max() / np.linalg.norm(optimum))
    if not left < 1:
        after = f"after {raw['run']['rounds']} rounds with local.lr {raw['local']['lr']}"
        raise Broken(f"quadratics: less than the whole way may be left {after}, got {left:.3g} of it")


def clients_may_hold_no_samples(subject: Subject) -> None:
    """It runs where some clients hold no samples."""
    raw = merged(subject.raw, SPARSE)
    try:
        scenario = parse_scenario(raw)
        federate(scenario.data, scenario.server_data, scenario.seed, scenario.public)
    except (ScenarioError, ValueError) as error:  # of a scenario of the user's own, with too few samples
        raise NotTried(f"this scenario cannot have clients without samples: {error}") from error
    runs.carried_out(raw)


METHODS = (nothing_is_changed_in_place, equal_arguments_give_equal_results, what_it_returns_is_finite)
SERVER: Groups = (
    (runs.a_scenario_can_name_it,),
    (samples_seen_are_counted, methods_return_records),
    (
        *METHODS,
        clients_states_keep_their_shapes,
        the_servers_state_keeps_its_shapes,
        the_servers_messages_keep_their_entries,
        updates_are_alike,
        weights_are_numbers,
    ),
    (runs.it_runs,),
    (
        runs.the_same_bits_again,
        samples_seen_are_foreseen,
        clients_may_hold_no_samples,
        it_comes_nearer_on_quadratics,
    ),
    (runs.the_same_bits_on_ray,),
)
PEERS: Groups = (
    (runs.a_scenario_can_name_it,),
    (samples_seen_are_counted, methods_return_records),
    (*METHODS, peers_states_keep_their_shapes, messages_are_alike),
    (runs.it_runs,),
    (runs.the_same_bits_again, samples_seen_are_foreseen, it_comes_nearer_on_quadratics),
    (runs.the_same_bits_on_ray,),
)
