"""Writes what happens in a run of peers as rows of its tables, and counts totals."""

from __future__ import annotations

from collections.abc import Sequence

from raysim.engine import rows
from raysim.engine.recorder import Recorder
from raysim.scenario.run_settings import RunSettings
from raysim.terms import Traffic
from raysim.workers.replies import Evaluated, StepNumbers, TrainedPeer
from raysim.world.peers_timeline import Exchanged
from results import Writer


class PeersRecorder(Recorder):
    """Records mixes, messages and evaluations."""

    def __init__(self, writer: Writer, run: RunSettings, *, synchronous: bool) -> None:
        """synchronous: whether peers wait for each other, so that nobody is training when a round ends."""
        super().__init__(writer, run, "dispatched", "used", "sent", "lost", "steps", "rounds")
        self._synchronous = synchronous

    def exchanged(
        self,
        exchanged: Exchanged,
        trained: Sequence[tuple[TrainedPeer, str]] = (),
        measured: StepNumbers | None = None,
    ) -> None:
        """Writes a round: its mixes and messages.

        trained: for each mix, what training gave and the worker that did it; () in a dry run. measured: what only a
        real round measures.
        """
        mixed, samples = exchanged.mixed, [self._samples[mix.peer] for mix in exchanged.mixed]
        sent = [len(mix.sent) for mix in mixed]
        arrived = [sum(message.arrives is not None for message in mix.sent) for mix in mixed]
        numbers = [training.numbers for training, _ in trained]
        sizes = [one.up_bytes or 0 for one in numbers]
        up, down = ([size * count for size, count in zip(sizes, counts, strict=False)] for counts in (sent, arrived))
        columns = rows.of_mixes(exchanged, samples)
        if trained:
            workers = [worker for _, worker in trained]
            columns |= {**rows.measured_columns(numbers), "worker": workers, "up_bytes": up}
        self.writer.add_columns("updates", columns, [one.own for one in numbers])
        self.writer.add_columns("exchanges", rows.of_messages(exchanged, sizes))
        self.totals.update(sent=sum(sent), lost=sum(sent) - sum(arrived))
        step = rows.of_step(
            exchanged,
            [heard.age for mix in mixed for heard in mix.inbox],
            used=len(mixed),
            discarded=0,
            in_flight=0 if self._synchronous else len(self._samples),
            samples=sum(samples),
        )
        self.step(step, measured, Traffic(sum(up), sum(down)))
        self.totals.update(dispatched=len(mixed), used=len(mixed), steps=1, rounds=1)
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
