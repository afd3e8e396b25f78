"""The engine of peers: follows their timeline, hands out work ahead of time, writes what comes back in its order."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from raysim.engine import rows
from raysim.engine.peers.jobs import PeersTasks
from raysim.engine.peers.pending import EvaluationTasks, RoundTasks
from raysim.engine.peers.recorder import PeersRecorder, spread
from raysim.engine.server.family import PROGRESS_S, Progress
from raysim.scenario import Scenario
from raysim.workers.peers_protocol import WorkPerPeer
from raysim.world import Work
from raysim.world.peers_timeline import Exchanged, PeersTimeline
from results import Writer


class PeersSimulation:
    """One run. `run` yields Progress while it writes the tables; after it, `model` and `loop_s` are there."""

    def __init__(self, scenario: Scenario, tasks: PeersTasks, writer: Writer) -> None:
        self.scenario, self.tasks = scenario, tasks
        self.recorder = PeersRecorder(writer, scenario.world.synchronous)
        # What was handed out and is not written yet.
        self._queue: deque[tuple[Exchanged, RoundTasks, EvaluationTasks | None]] = deque()
        self._metrics: dict[str, float] = {}
        self._evaluated_at: int | None = None
        self._told = 0.0

    @property
    def totals(self) -> dict[str, int]:
        """Of what happened so far."""
        return dict(self.recorder.totals)

    @property
    def ended_early(self) -> None:
        """Peers go on to the end."""
        return None

    def run(self) -> Iterator[Progress]:
        """Raises JobFailed where a task does, ValueError where a peer has nothing to train on."""
        self.described = described = self.tasks.start()
        self.recorder.partition(described.partition, described.samples)
        timeline = new_timeline(self.scenario, described.samples, self.tasks.work)
        self._began, self._started = time.time(), time.perf_counter()
        self.tasks.begin(timeline.start)
        for exchanged in timeline:
            work = self.tasks.exchange(exchanged)
            self._queue.append((exchanged, work, self.tasks.evaluate(exchanged) if exchanged.evaluated else None))
            self.tasks.forget(timeline.live)
            yield from self._write(self.tasks.ahead)
        yield from self._write(0)
        self.model = self.tasks.finish()
        self.loop_s = time.perf_counter() - self._started

    def _write(self, ahead: int) -> Iterator[Progress]:
        """Writes what is done at the head of the queue, until at most `ahead` tasks of it are not."""
        while True:
            while self._queue and not _undone(*self._queue[0][1:]):
                yield from self._record(*self._queue.popleft())
            if sum(_undone(work, evaluation) for _, work, evaluation in self._queue) <= ahead:
                return
            self.tasks.pool.wait()

    def _record(self, exchanged: Exchanged, work: RoundTasks, evaluation: EvaluationTasks | None) -> Iterator[Progress]:
        seconds, elapsed = work.mixing_s, time.perf_counter() - self._started
        self.recorder.exchanged(exchanged, work.rows, {"seconds": seconds, "elapsed_s": elapsed})
        self.recorder.worked(exchanged, work.jobs, self._began)
        if evaluation is not None:
            of_peers = evaluation.of_peers
            self.recorder.evaluated(exchanged, of_peers, evaluation.apart)
            self.recorder.worked(exchanged, evaluation.jobs, self._began)
            first = self.scenario.run.evaluate_on[0]
            self._metrics = spread([rows.means(splits[first]) for _, splits in of_peers]) | evaluation.apart
            self._evaluated_at = exchanged.version
        yield from self._tell(exchanged)

    def _tell(self, exchanged: Exchanged) -> Iterator[Progress]:
        now, totals = time.perf_counter(), self.totals
        if now - self._told < PROGRESS_S and not exchanged.evaluated:
            return
        self._told = now
        in_flight = 0 if self.scenario.world.synchronous else self.tasks.peers
        progress = Progress(
            round=exchanged.version,
            rounds=self.scenario.run.rounds,
            virtual_time=exchanged.time,
            steps=totals["steps"],
            in_flight=in_flight,
            used=totals["used"],
            seconds=now - self._started,
            evaluated=self._evaluated_at,
            metrics=self._metrics,
        )
        shown = {"round": progress.round, "virtual_time": progress.virtual_time, "in_flight": in_flight}
        self.tasks.pool.gauge({**shown, "updates": progress.used, **self._metrics})
        yield progress


def _undone(work: RoundTasks, evaluation: EvaluationTasks | None) -> int:
    """Tasks that are not done."""
    return sum(not job.done for job in (*work.jobs, *(evaluation.jobs if evaluation else ())))


def new_timeline(scenario: Scenario, samples: NDArray[np.int64], measure: Callable[[], WorkPerPeer]) -> PeersTimeline:
    """The run's timeline. measure: asked for a peer's work where delays depend on it."""
    if without := np.flatnonzero(samples == 0).tolist():
        raise ValueError(
            f"data.partition: every peer must hold a sample to train on, got none for {len(without)} peers, such as "
            f"{without[:5]}; take fewer data.clients, or another partition"
        )
    assert scenario.topology is not None
    work = None
    if scenario.world.delay.needs_work:
        cost = measure()

        def work(peer: int, neighbours: int) -> Work:
            trained = 3 * scenario.local.total_samples(int(samples[peer]))  # a backward pass is two
            passes = trained + cost.passes + neighbours * cost.passes_per_neighbour
            sent = neighbours * cost.message_bytes
            return Work(cost.forward_flops * passes, sent, sent)

    run, peers = scenario.run, len(samples)
    return PeersTimeline(scenario.world, scenario.topology, peers, run.rounds, run.evaluate_every, scenario.seed, work)
