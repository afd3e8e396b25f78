"""Writes what happens in a run of peers as rows of its tables, and counts totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from raysim.engine import rows
from raysim.engine.recorder import Recorder
from raysim.engine.visitor import Visitor
from raysim.scenario.schema import RunSettings
from raysim.workers.replies import Evaluated, Numbers, TrainedPeer
from raysim.world.peers_timeline import Exchanged
from results import Writer


class PeersRecorder(Recorder, Visitor):
    """Records mixes, messages and evaluations."""

    def __init__(self, writer: Writer, run: RunSettings, *, synchronous: bool) -> None:
        """synchronous: whether peers wait for each other, so that nobody is training when a round ends."""
        super().__init__(writer, run, "dispatched", "used", "sent", "lost", "steps", "rounds")
        self._synchronous = synchronous

    def exchanged(
        self,
        exchanged: Exchanged,
        trained: Sequence[tuple[TrainedPeer, str]] = (),
        measured: Numbers | None = None,
    ) -> None:
        """Writes a round: its mixes and messages.

        trained: for each mix, what training gave and the worker that did it; () in a dry run. measured: what only a
        real round measures.
        """
        traffic = Counter(up_bytes=0, down_bytes=0)
        for place, mixed in enumerate(exchanged.mixed):
            row = rows.of_mix(exchanged, mixed, self._samples[mixed.peer])
            own: Numbers = {}
            size = None
            sent, arrived = len(mixed.sent), sum(sent.arrives is not None for sent in mixed.sent)
            if trained:
                training, worker = trained[place]
                size = training.message_bytes
                row, own = rows.filled(row, training.numbers, worker=worker, up_bytes=size * sent)
                traffic.update(up_bytes=size * sent, down_bytes=size * arrived)
            self.totals.update(sent=sent, lost=sent - arrived)
            self.writer.add(row, own)
            self.add(rows.of_messages(exchanged, mixed, size))
        mixes = len(exchanged.mixed)
        step = rows.of_step(
            exchanged,
            [heard.age for mixed in exchanged.mixed for heard in mixed.inbox],
            used=mixes,
            discarded=0,
            in_flight=0 if self._synchronous else len(self._samples),
            samples=sum(self._samples[mixed.peer] for mixed in exchanged.mixed),
        )
        self.step(step, {} if measured is None else {**traffic, **measured})
        self.totals.update(dispatched=mixes, used=mixes, steps=1, rounds=1)
        self.ended_by = exchanged.ends

    def evaluated(
        self, exchanged: Exchanged, of_peers: list[tuple[int, dict[str, Evaluated]]], apart: dict[str, float]
    ) -> None:
        """Writes an evaluation. of_peers: by peer and split. apart: peers' distances to their mean."""
        for peer, splits in of_peers:
            for split, found in splits.items():
                self.add(rows.of_evaluation(exchanged, "peer", peer, split, found.values, found.samples))
        for split in of_peers[0][1]:
            samples = sum(splits[split].samples for _, splits in of_peers)
            values = spread([splits[split].values for _, splits in of_peers])
            self.add(rows.of_evaluation(exchanged, "peers", None, split, values, samples))
        first = next(iter(of_peers[0][1]))  # distances belong to no split, but tuning reads the first one
        self.add(rows.of_evaluation(exchanged, "peers", None, first, apart, 0))


def spread(of_peers: list[dict[str, float | None]]) -> dict[str, float | None]:
    """Returns statistics of each metric over the peers for which it is defined; None if there are none.

    of_peers: for each peer, its value of each metric. The metric's own name holds the mean; `_min`, `_max` and `_gap`
    are appended for the smallest and the largest value, and for their difference.
    """
    found: dict[str, float | None] = {}
    for metric in of_peers[0]:
        values = [value for metrics in of_peers if (value := metrics[metric]) is not None]
        if not values:
            found |= {f"{metric}{end}": None for end in ("", "_min", "_max", "_gap")}
            continue
        low, high = min(values), max(values)
        found[metric] = sum(values) / len(values)
        found |= {f"{metric}_min": low, f"{metric}_max": high, f"{metric}_gap": high - low}
    return found
