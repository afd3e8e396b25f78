"""A run of peers that has started: its timeline, the jobs of each round, and what is recorded of what they return."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raysim.engine.checkpoint import Checkpoint, skip
from raysim.engine.peers.jobs import PeersJobs
from raysim.engine.peers.pending import PendingPeersEvaluation, PendingRound
from raysim.engine.peers.recorder import Agreement, PeersRecorder, spread
from raysim.engine.progress import Mark, Stopwatch, when
from raysim.engine.recorder import numbers, times
from raysim.engine.simulation import Change, Committed, Final
from raysim.parts.errors import BadInput
from raysim.scenario import Scenario
from raysim.terms import Moment, Trip
from raysim.uplink.channel import channels, traffic_of
from raysim.workers.replies import Measured, WorkCost
from raysim.world import Cost, Neighbours
from raysim.world.gossip_timeline import GossipTimeline
from raysim.world.pairs_timeline import PairsTimeline
from raysim.world.peers_happening import Exchanged, Joined
from raysim.world.peers_timeline import PeersTimeline
from raysim.world.rounds_timeline import RoundsTimeline


class PeersSimulation:
    """A run of peers that has started."""

    def __init__(
        self, scenario: Scenario, jobs: PeersJobs, recorder: PeersRecorder, checkpoint: Checkpoint | None
    ) -> None:
        self.scenario, self.described = scenario, jobs.described
        self._jobs, self._recorder = jobs, recorder
        recorder.held(self.described.samples)
        recorder.budget.require_countable(self.described.forward_flops)
        self._last: Exchanged | None = None  # the round that was written last
        self._kept: dict[str, Any] | None = None  # when peers' states were kept last
        self._timeline = timeline_of(scenario, self.described.samples, jobs.cost)
        self._happenings: Iterator[Exchanged] = iter(self._timeline)
        self._agreement = _agreement_of(scenario, jobs.peers, self._timeline)
        if checkpoint:
            self.committed = jobs.recall(checkpoint)
            for happening in skip(self._happenings, checkpoint):
                jobs.now, self._last = happening.moment, happening
                if self._agreement:
                    self._agreement.add(happening)
                self._kept = when(happening) if happening.evaluated else self._kept
        else:
            recorder.partition(self.described.partition)
        self.stopwatch = Stopwatch.start(checkpoint.seconds if checkpoint else 0.0)
        if not checkpoint:
            jobs.begin(self._timeline.start)
            self.committed = Committed(jobs.kept([(peer, 0) for peer in range(jobs.peers)]))

    def happenings(self) -> Iterator[Exchanged]:
        while (happening := next(self._happenings, None)) is not None:  # `end` leaves none
            yield happening

    def is_last(self, happening: Exchanged) -> bool:
        return happening.ends is not None or not all(mixed.next.trains for mixed in happening.mixed)

    def end(self) -> None:
        assert self._last is not None  # it is the round whose evaluation ends the run
        self._jobs.go_back(self.committed, self._last.moment)
        self._happenings = iter(())

    def memory(self) -> dict[str, Any]:
        return {}

    def hand_out(self, happening: Exchanged) -> tuple[PendingRound, Change]:
        pending = self._jobs.exchange(happening)
        gone = self._jobs.forget(self._timeline.live)
        made = [(peer, number + 1) for one in happening.changes for peer, number in one.changed]
        return pending, Change(self._jobs.kept(made), gone)

    def record(self, happening: Exchanged, pending: PendingRound | None) -> Mark:
        assert pending is not None  # every round has jobs
        self._last = happening
        if self._agreement:
            self._agreement.add(happening)
        measured = {
            "client_flops": times(pending.passes, self.described.forward_flops),
            "seconds": pending.mixing_s,
            "elapsed_s": self.stopwatch.seconds,
        }
        self._recorder.exchanged(happening, pending.trained, Measured(measured, {}))
        self._recorder.jobs(happening, pending.mixes, self.stopwatch.began)
        metrics = self._record_evaluation(happening, pending.evaluation) if pending.evaluation else None
        self._record_divergence(happening, pending)
        self._kept = when(happening) if happening.evaluated else self._kept
        in_flight = 0 if self.scenario.world.synchronous else self._jobs.peers
        return Mark(happening.version, happening.time, in_flight, metrics, happening.ends is not None)

    def _record_evaluation(self, exchanged: Exchanged, pending: PendingPeersEvaluation) -> dict[str, float]:
        """Writes an evaluation. Returns the peers' metrics on the first split, and how far their models are apart."""
        of_peers, apart = pending.of_peers, pending.apart
        if self._agreement:
            apart = {**apart, **self._agreement.measured}
        if exchanged.present is not None:  # who counts
            apart = {**apart, "present": float(len(exchanged.present))}
        self._recorder.evaluated(exchanged, of_peers, apart)
        self._recorder.jobs(exchanged, pending.jobs, self.stopwatch.began)
        first = self.scenario.evaluated_splits[0]
        return numbers({**spread([splits[first].values for _, splits in of_peers]), **apart})

    def _record_divergence(self, exchanged: Exchanged, pending: PendingRound) -> None:
        """Notes what was not finite: in trainings, then in the states that peers mixed, then in evaluations."""
        results = [result for job in pending.mixes for result in job.result]
        trained = zip(((mix.peer, mix.number) for mix in exchanged.mixed), pending.trained, strict=True)
        mixed = zip((one for change in exchanged.changes for one in change.changed), results, strict=True)
        found = [(*at, of_training.diverged) for at, (of_training, _) in trained]
        found += [(*at, result.diverged and f"state {result.diverged!r}") for at, result in mixed]
        for peer, number, what in found:
            if what:
                self._recorder.diverge(exchanged, f"the {what} of peer {peer}", number, peer)
        for peer, splits in pending.evaluation.of_peers if pending.evaluation else ():
            if not all(math.isfinite(found.sums["loss"]) for found in splits.values()):
                self._recorder.diverge(exchanged, f"the loss of peer {peer}", exchanged.version, peer)

    # --- the end ------------------------------------------------------------------------------------------------------

    def finish(self) -> Final:
        return Final(self._jobs.final_models(), None, self._best())

    def _best(self) -> dict[str, np.ndarray] | None:
        found, kept = self._recorder.best.found, self.committed.best
        return self._jobs.models_in(kept, _moment(found)) if found and kept else None

    def model_keys(self) -> list[str]:
        return [f"state/{peer}" for peer in range(self._jobs.peers)]

    def left(self) -> tuple[Final, dict[str, Any]] | None:
        """Peers' states are kept when they are evaluated; after a divergence, those of the last evaluation are left."""
        if self._kept is None:
            return None
        return Final(self._jobs.models_in(self.committed.records, _moment(self._kept)), None, self._best()), self._kept


def _agreement_of(scenario: Scenario, peers: int, timeline: PeersTimeline) -> Agreement | None:
    """Returns what measures how a changing graph mixes, or what mass is lost; None if the graph stays and nothing is
    lost, or if models are exchanged in pairs."""
    world, pushes = scenario.world, scenario.peer.mixes == "push"
    loses = pushes and world.loss > 0 and world.on_loss == "gone"
    if scenario.peer.pairs or not (scenario.graph_changes or loses):
        return None
    assert scenario.topology is not None
    step, later = scenario.topology.step, timeline.later
    return Agreement(peers, step, pushes=pushes, loses=loses, later=later, joins=world.join)


def _moment(when: Mapping[str, Any]) -> Moment:
    """Returns the end of the round at which peers were evaluated."""
    return Moment(when["step"], when["step"], when["virtual_time"])


# --- the timeline ---------------------------------------------------------------------------------------------------


def timeline_of(scenario: Scenario, samples: NDArray[np.int64], measure: Callable[[], WorkCost]) -> PeersTimeline:
    """Returns the timeline of a run of peers. measure: returns the cost of a peer; called only if delays depend on it.

    Raises BadInput if a peer has no samples to train on.
    """
    if without := np.flatnonzero(samples == 0).tolist():
        text = f"every peer must hold a sample to train on, got none for {len(without)} peers, such as {without[:5]}"
        raise BadInput("data.partition", f"{text}; take fewer data.clients, or another partition")
    assert scenario.topology is not None
    cost = None
    if scenario.world.delay.needs_cost:
        peer_cost, groups = measure(), scenario.groups

        def cost(peer: int, near: Neighbours) -> Cost:
            held = int(samples[peer])
            # A backward pass costs two forward passes.
            trained = 3 * scenario.peer.samples_seen(groups.local(peer), held)
            mixing = peer_cost.passes.of(held) + len(near.senders) * peer_cost.passes_per_neighbour.of(held)
            passes = trained + mixing
            size = message_bytes(scenario, peer_cost, peer, Moment())
            down, up = len(near.senders) * size, len(near.receivers) * size
            return Cost(peer_cost.forward_flops * passes, down, up, passes / 3)

    horizon, peers = scenario.run.horizon, len(samples)
    peer, world = scenario.peer, scenario.world
    kind = PairsTimeline if peer.pairs else RoundsTimeline if world.synchronous else GossipTimeline
    given = (world, scenario.topology, peers, horizon, scenario.seed, cost)
    return kind(*given, consumes=peer.consumes, lag=peer.lag, sends_first=peer.sends_state)


def message_bytes(scenario: Scenario, cost: WorkCost, peer: int, moment: Moment) -> int:
    """Returns the size of a peer's message. cost: of a peer, as it was measured. moment: when it began to train."""
    trip = Trip(cost.sizes, cost.tensors, scenario.groups.name(peer))
    up = channels("uplink", [one.at(moment) for one in scenario.uplink], cost.up)
    return traffic_of(scenario.peer.at(moment).traffic(trip), up).up


def sizes_of(scenario: Scenario, cost: WorkCost, exchanged: Exchanged, began: dict[int, Moment]) -> Iterator[int]:
    """Yields the bytes of a message for each mix of a round. began: when each peer began to train for its next mix,
    which changes; a peer that is not in it began at the start."""
    over = exchanged.version if scenario.world.synchronous else exchanged.round
    for change in exchanged.changes:
        if isinstance(change, Joined):
            began[change.peer] = Moment(exchanged.round, 0, change.time)
            continue
        yield message_bytes(scenario, cost, change.peer, began.get(change.peer, Moment()))
        began[change.peer] = Moment(over, change.number + 1, change.time)
