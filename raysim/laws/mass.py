"""The law of algorithms that push: while nobody steps, what all peers have in sum stays."""

from collections.abc import Iterator

import torch
from torch import Tensor

from raysim.algorithms import Inbox
from raysim.data import federate
from raysim.engine.families import PeersFamily
from raysim.engine.peers.timeline import timeline_of
from raysim.laws.small_scenarios import Raw, merged
from raysim.laws.subject import Broken, Subject
from raysim.parts.errors import ScenarioError
from raysim.parts.process import isolated
from raysim.parts.rng import generator
from raysim.scenario import Scenario, parse_scenario
from raysim.terms import ClientState, Record
from raysim.workers.peers import PeersWorker
from raysim.world.peers_timeline import Mixed, PeersTimeline

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
