"""Writes what happens in a run of peers as rows of its tables, and counts totals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raysim.engine import rows
from raysim.engine.recorder import Recorder
from raysim.workers.replies import Evaluated, TrainedPeer
from raysim.world.peers_timeline import Exchanged, Mixed
from results import Writer


class PeersRecorder(Recorder):
    """Records mixes, messages and evaluations."""

    def __init__(self, writer: Writer, *, synchronous: bool) -> None:
        """synchronous: whether peers wait for each other, so that nobody is training when a round ends."""
        super().__init__(writer, "dispatched", "used", "sent", "lost", "steps", "rounds")
        self._synchronous = synchronous
        self._samples: list[int] = []  # number of samples that each peer trains on; `held` sets it

    def held(self, samples: NDArray[np.int64]) -> None:
        """Notes the number of samples that each peer trains on, (peers,). It must be called first."""
        self._samples = samples.tolist()

    def exchanged(
        self,
        exchanged: Exchanged,
        trained: Sequence[tuple[TrainedPeer, str]] | None = None,
        measured: dict[str, Any] | None = None,
    ) -> None:
        """Writes a round: its mixes and messages.

        trained: for each mix, what training gave and the worker that did it. measured: columns of the table `steps`
        that only a real round has. Both are None in a dry run.
        """
        when = {"step": exchanged.version, "round": exchanged.round}
        up = down = 0
        for place, mixed in enumerate(exchanged.mixed):
            size, training = _training_row(*trained[place], len(mixed.sent)) if trained else (None, {})
            arrived = sum(sent.arrives is not None for sent in mixed.sent)
            self.totals.update(sent=len(mixed.sent), lost=len(mixed.sent) - arrived)
            if size is not None:
                up, down = up + size * len(mixed.sent), down + size * arrived
            self.add("updates", [when | self._update_row(mixed) | training])
            for sent in mixed.sent:
                edge = {"source": sent.source, "target": sent.target, "bytes": size, "arrived_at": sent.arrives}
                self.writer.add("exchanges", {**when, "virtual_time": sent.time, **edge})
        sizes = {"up_bytes": up, "down_bytes": down} if trained is not None else {}
        self.step(when | self._step_row(exchanged) | sizes | (measured or {}))
        mixes = len(exchanged.mixed)
        self.totals.update(dispatched=mixes, used=mixes, steps=1, rounds=1)

    def _update_row(self, mixed: Mixed) -> rows.Row:
        ages = [heard.age for heard in mixed.inbox]
        return {
            "virtual_time": mixed.time,
            "client": mixed.peer,
            "dispatch": mixed.serial,
            "status": "used",
            "dispatched_at": mixed.began,
            "arrived_at": mixed.trained,
            "version": mixed.number,
            "staleness": sum(ages) / len(ages) if ages else 0.0,
            "samples": self._samples[mixed.peer],
        }

    def _step_row(self, exchanged: Exchanged) -> rows.Row:
        ages = [heard.age for mixed in exchanged.mixed for heard in mixed.inbox]
        return {
            "virtual_time": exchanged.time,
            "used": len(exchanged.mixed),
            "discarded": 0,
            "in_flight": 0 if self._synchronous else len(self._samples),
            "staleness_mean": sum(ages) / len(ages) if ages else None,
            "staleness_max": max(ages, default=None),
            "samples": sum(self._samples[mixed.peer] for mixed in exchanged.mixed),
        }

    def evaluated(
        self, exchanged: Exchanged, of_peers: list[tuple[int, dict[str, Evaluated]]], apart: dict[str, float]
    ) -> None:
        """Writes an evaluation. of_peers: by peer and split. apart: peers' distances to their mean."""
        for peer, splits in of_peers:
            for split, found in splits.items():
                new = rows.evaluation_rows(exchanged, "peer", peer, split, found.values, found.samples)
                self.add("evaluations", new)
        for split in of_peers[0][1]:
            samples = sum(splits[split].samples for _, splits in of_peers)
            values = spread([splits[split].values for _, splits in of_peers])
            self.add("evaluations", rows.evaluation_rows(exchanged, "peers", None, split, values, samples))
        first = next(iter(of_peers[0][1]))  # distances belong to no split, but tuning reads the first one
        self.add("evaluations", rows.evaluation_rows(exchanged, "peers", None, first, apart, 0))


def _training_row(trained: TrainedPeer, worker: str, messages: int) -> tuple[int, rows.Row]:
    """Returns the bytes of a peer's message, and the columns of its training. messages: how many of them it sent."""
    size = trained.message_bytes
    return size, {**trained.columns._asdict(), "worker": worker, "up_bytes": size * messages, "own": trained.own}


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
