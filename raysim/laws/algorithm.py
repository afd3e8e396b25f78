"""The laws of algorithms, with a server and without one.

Most rules for their methods are checked at each call, in any run, by `raysim.workers.returned`. Where one is broken,
the law that a run ends fails.
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from raysim.algorithms import Inbox
from raysim.data import federate
from raysim.engine.families import PeersFamily, family_of
from raysim.engine.peers.simulation import timeline_of
from raysim.laws import runs
from raysim.laws.subject import Broken, Groups, Law, NotTried, Raw, Subject, merged, quadratics
from raysim.parts.errors import ScenarioError
from raysim.parts.process import isolated
from raysim.parts.rng import generator
from raysim.scenario import Scenario, parse_scenario
from raysim.terms import ClientState, Record
from raysim.workers.peers import PeersWorker
from raysim.world.peers_happening import Mixed
from raysim.world.peers_timeline import PeersTimeline

STILL = {"local": {"lr": 1e-30}, "run": {"rounds": 12}}  # steps change nothing, but samples are seen
CHURN = {"availability": {"name": "random", "probability": 0.6, "slot": 1.5}, "leave": "hand_over"}
LOSSES = {
    "delay": {"name": "log_normal", "median": 1.0, "sigma": 0.5, "unit": "seconds"},
    "edge_delay": {"name": "exponential", "mean": 0.7},
    "loss": 0.3,
}
WORLDS: list[Raw] = [
    {**LOSSES, **CHURN, "on_loss": "kept", "synchronous": False},
    {**LOSSES, **CHURN, "on_loss": "gone", "synchronous": True},
    {**LOSSES, "on_loss": "kept", "synchronous": False},
    {**LOSSES, "on_loss": "gone", "synchronous": True},
]
LENGTHS = (30, 10, 3)  # rounds: it must be nearer to the optimum after one of them
# How it may come nearer: as it is, with local steps that suit a server's long ones, or to an optimum that is far enough
# for steps whose length is fixed.
QUADRATICS: dict[str, Raw] = {
    "local.lr 0.3": {},
    "local.lr 0.001": {"local": {"lr": 0.001}},
    "an optimum a thousand times as far": {"data": {"centers": [[1000.0, -2000.0, 3000.0]] * 4}},
}
# Of 60 clients with two or three samples each, about a third lose all of them to the server.
SPARSE = {
    "data": {"clients": 60, "local_test": 0.0, "unseen": 0.0},
    "run": {"evaluate_clients": None},
    "server_data": {"name": "in_domain", "samples": 100, "split": "train"},
}


def samples_seen_are_foreseen(subject: Subject) -> None:
    """`samples_seen` is what `update` or `local` computes gradients for, unless clients stop early."""
    scenario = subject.scenario
    if scenario.has_server and scenario.central.stops_early:
        raise NotTried("clients stop early, so delays follow what they did")
    for client, samples, seen in _seen_by_clients(subject) if scenario.has_server else _seen_by_peers(scenario):
        foreseen = scenario.algorithm.samples_seen(scenario.groups.local(client), samples)
        if foreseen != seen:
            text = f"must compute gradients for the {foreseen} samples that `samples_seen` says, got {seen}"
            raise Broken(f"client {client}: {text}; correct `samples_seen`, or computed delays are wrong")


def _seen_by_clients(subject: Subject) -> list[tuple[int, int, int]]:
    """Returns a client, its samples, and for how many it computed gradients, for each update of the trial."""
    used = [row for row in runs.first_run(subject).updates if row["samples_seen"] is not None]
    return [(row["client"], row["samples"], row["samples_seen"]) for row in used]


def _seen_by_peers(scenario: Scenario) -> list[tuple[int, int, int]]:
    """Returns the same for the first training of each peer."""
    with isolated(torch=True):
        federation = federate(scenario.data, scenario.server_data, scenario.seed, scenario.public)
        worker, found = family_of(scenario).worker(federation), []
        assert isinstance(worker, PeersWorker)
        for peer, samples in enumerate(federation.samples.tolist()):
            state, before = worker.first(peer), worker.net.seen
            worker.trained(peer, 0, state)
            found.append((peer, samples, worker.net.seen - before))
    return found


def it_comes_nearer_on_quadratics(subject: Subject) -> None:
    """On quadratics that all have one optimum, it comes nearer to it, however short or long its steps are."""
    raw = quadratics(subject.part, subject.block)
    try:
        scenario = parse_scenario(raw)
    except ScenarioError as error:
        raise NotTried(f"it does not go with quadratics: {error.problems[0]}") from error
    if scenario.has_server and not any(row["down_bytes"] for row in runs.first_run(subject).updates):
        raise NotTried("clients are sent nothing, so the server's model is not theirs")
    left = {}
    for how, changes in QUADRATICS.items():
        left[how] = _left(merged(raw, changes))
        if left[how] < 1:
            return
    got = ", ".join(f"{share:.3g} with {how}" for how, share in left.items())
    raise Broken(f"quadratics: less than the whole way may be left, got {got}; does `step` move along the updates?")


def _left(raw: Raw) -> float:
    """Returns the share of the way to the optimum of quadratics that is left after one of LENGTHS."""
    optimum, left = np.array(raw["data"]["centers"][0]), []
    for rounds in LENGTHS:  # one with momentum goes past the optimum, and may be anywhere later
        try:
            ended = runs.carried_out(merged(raw, {"run": {"rounds": rounds, "evaluate_every": rounds}}))
        except Broken as error:
            hint = "an algorithm that cannot train on the data set quadratic says so in its `problems`"
            raise Broken(f"{error}; {hint}") from error
        distances = np.linalg.norm(np.atleast_2d(ended.vectors["w"]) - optimum, axis=1)
        left.append(float(distances.max() / np.linalg.norm(optimum)))
        if left[-1] < 1:
            break
    return min(left)


def clients_may_hold_no_samples(subject: Subject) -> None:
    """It runs where some clients hold no samples."""
    raw = merged(subject.raw, SPARSE)
    try:
        scenario = parse_scenario(raw)
        federate(scenario.data, scenario.server_data, scenario.seed, scenario.public)
    except (ScenarioError, ValueError) as error:  # of a scenario of the user's own, with too few samples
        raise NotTried(f"this scenario cannot have clients without samples: {error}") from error
    runs.carried_out(raw)


def mass_is_kept(subject: Subject) -> None:
    """While nobody steps, the sums of `w` and of weights over all peers stay, with losses and churn."""
    for world in WORLDS:
        topology = {"name": "exponential", "one_peer": True, "period_s": 2.0}
        try:
            scenario = parse_scenario(merged(subject.raw, {"world": world, "topology": topology, **STILL}))
        except ScenarioError:  # such as peers that come and go, with `overlap`
            continue
        for time, key, before, now in masses(scenario):
            if abs(now - before) > 1e-5 * max(abs(before), 1):
                text = f"the sum of {key!r} over all peers, and of what is under way and lost, must stay {before:.7g}"
                how = "peers that wait" if scenario.world.synchronous else "peers that do not wait"
                cure = "`consumes` must be true, and `mix` add what `inbox.pushed` returns"
                raise Broken(f"mix, {how}, at {time:g} s: {text}, got {now:.7g}; {cure}")


def masses(scenario: Scenario) -> Iterator[tuple[float, str, float, float]]:
    """Yields, at the end of each round: its time, an entry, and its sums at first and then.

    Entries are `w` and all single numbers. Peers start apart from each other. A sum is that of peers' states, of
    messages under way, and of what was lost with messages.
    """
    with isolated(torch=True):
        federation = federate(scenario.data, scenario.server_data, scenario.seed, scenario.public)
        worker = PeersFamily(scenario).worker(federation)
        assert isinstance(worker, PeersWorker)
        timeline = timeline_of(scenario, federation.samples, worker.cost)
        yield from _Along(worker, timeline).sums()


class _Along:
    """Peers' states along a timeline."""

    def __init__(self, worker: PeersWorker, timeline: PeersTimeline) -> None:
        self._worker, self._timeline = worker, timeline
        self._states = [self._apart(peer) for peer in range(timeline.peers)]
        self._drafts: dict[int, ClientState[Tensor]] = {}
        self._messages: dict[tuple[int, int], Record] = {}
        self._unheard: set[tuple[int, int, int]] = set()  # messages, by source, number and target
        self._elsewhere: Record = {}  # the sum of what is under way, and of what was lost
        for peer in range(timeline.peers):
            self._train(peer, 0)

    def sums(self) -> Iterator[tuple[float, str, float, float]]:
        first = self._sums()
        for exchanged in self._timeline:
            self._unheard.update((one.source, one.number, one.target) for mix in exchanged.mixed for one in mix.sent)
            for mix in exchanged.mixed:
                self._mix(mix)
                self._train(mix.peer, mix.number + 1)
            yield from ((exchanged.time, key, first[key], now) for key, now in self._sums().items())

    def _sums(self) -> dict[str, float]:
        return {
            key: float(torch.stack([state.algorithm[key].double().sum() for state in self._states]).sum() + elsewhere)
            for key, elsewhere in self._elsewhere.items()
        }

    def _apart(self, peer: int) -> ClientState[Tensor]:
        state = self._worker.first(peer)
        moved = generator(peer, "apart").standard_normal(len(state.algorithm["w"]))
        w = state.algorithm["w"] + torch.from_numpy(moved).to(state.algorithm["w"])
        return state._replace(algorithm={**state.algorithm, "w": w})

    def _train(self, peer: int, number: int) -> None:
        self._drafts[peer], self._messages[peer, number] = self._worker.trained(peer, number, self._states[peer])
        for key, entry in self._messages[peer, number].items():
            if key == "w" or entry.ndim == 0:
                self._elsewhere.setdefault(key, torch.zeros((), dtype=torch.float64))

    def _mix(self, mix: Mixed) -> None:
        own = self._messages[mix.peer, mix.number]
        heard = [self._messages[one.peer, one.number] for one in mix.inbox]
        shares = [one.share for one in mix.inbox]
        new = [(one.peer, one.number, mix.peer) in self._unheard for one in mix.inbox]
        self._unheard.difference_update((one.peer, one.number, mix.peer) for one in mix.inbox)
        for key, elsewhere in self._elsewhere.items():
            arrived = [
                is_new * share * message[key].double().sum()
                for is_new, share, message in zip(new, shares, heard, strict=True)
            ]
            self._elsewhere[key] = elsewhere + (1 - mix.kept) * own[key].double().sum() - sum(arrived)
        inbox = Inbox(own, heard, [one.weight for one in mix.inbox], shares=shares, kept=mix.kept)
        self._states[mix.peer] = self._worker.mixed(mix.peer, mix.number, self._drafts[mix.peer], inbox)


def _groups(*further: Law) -> Groups:
    return (
        (runs.a_scenario_can_name_it,),
        (runs.it_runs,),
        (runs.the_same_bits_again, samples_seen_are_foreseen, it_comes_nearer_on_quadratics, *further),
        (runs.the_same_bits_when_it_goes_on,),
        (runs.the_same_bits_on_ray,),
    )


PEERS = _groups()
PUSHING = _groups(mass_is_kept)
SERVER = _groups(clients_may_hold_no_samples)
