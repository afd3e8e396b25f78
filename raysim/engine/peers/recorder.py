"""What happens among peers, as rows of the run's tables and as totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actors import Job
from raysim.engine import rows
from raysim.world.peers_timeline import Exchanged, Mixed
from results import Writer

Sums = dict[str, dict[str, float]]  # by split, of each metric over `samples`, with their number


class PeersRecorder:
    """Writes rows, in the order of the calls. totals: what run.json says; early: such a run goes on to its end."""

    def __init__(self, writer: Writer, synchronous: bool) -> None:
        """synchronous: whether peers wait for each other, so that nobody is at work between rounds."""
        self.writer = writer
        self.totals = Counter(dispatched=0, used=0, sent=0, lost=0, steps=0, rounds=0)
        self.early = None
        self._synchronous = synchronous

    def partition(self, table: dict[str, NDArray[Any]], samples: NDArray[np.int64]) -> None:
        """table: columns of who holds how much of what. samples: that each peer trains on."""
        self._samples: list[int] = samples.tolist()
        self._add("partition", rows.partition_rows(table))

    def exchanged(
        self,
        exchanged: Exchanged,
        trained: Sequence[dict[str, Any]] | None = None,
        measured: dict[str, Any] | None = None,
    ) -> None:
        """trained: what training gave, a row a mix; measured: of the round. None of them where nothing is trained."""
        when = {"step": exchanged.version, "round": exchanged.round}
        up = down = 0
        for mixed, given in zip(exchanged.mixed, trained or [{}] * len(exchanged.mixed), strict=True):
            of_training = dict(given)
            size = of_training.pop("bytes", None)
            arrived = sum(sent.arrives is not None for sent in mixed.sent)
            self.totals.update(sent=len(mixed.sent), lost=len(mixed.sent) - arrived)
            if size is not None:
                of_training["up_bytes"] = size * len(mixed.sent)
                up, down = up + size * len(mixed.sent), down + size * arrived
            self.writer.add("updates", when | self._update_row(mixed) | of_training)
            for sent in mixed.sent:
                edge = {"source": sent.source, "target": sent.target, "bytes": size, "arrived_at": sent.arrives}
                self.writer.add("exchanges", {**when, "virtual_time": sent.time, **edge})
        of_round = {"up_bytes": up, "down_bytes": down} if trained is not None else {}
        self._add("steps", [when | self._step_row(exchanged) | of_round | (measured or {})])
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

    def evaluated(self, exchanged: Exchanged, of_peers: list[tuple[int, Sums]], apart: dict[str, float]) -> None:
        """apart: how far all peers are from their mean, by metric."""
        for peer, splits in of_peers:
            for split, sums in splits.items():
                values, samples = rows.means(sums), int(sums["samples"])
                self._add("evaluations", rows.evaluation_rows(exchanged, "peer", peer, split, values, samples))
        for split in of_peers[0][1]:
            samples = sum(int(splits[split]["samples"]) for _, splits in of_peers)
            values = spread([rows.means(splits[split]) for _, splits in of_peers])
            self._add("evaluations", rows.evaluation_rows(exchanged, "peers", None, split, values, samples))
        first = next(iter(of_peers[0][1]))  # where tuning looks, though parameters are of no split
        self._add("evaluations", rows.evaluation_rows(exchanged, "peers", None, first, apart, 0))

    def worked(self, exchanged: Exchanged, jobs: Sequence[Job], started: float) -> None:
        """jobs: what was done for it. started: when the first task of the run was, in seconds since the epoch."""
        self._add("tasks", rows.task_rows(exchanged, jobs, started))

    def _add(self, table: str, new: list[rows.Row]) -> None:
        for row in new:
            self.writer.add(table, row)


def spread(of_peers: list[dict[str, float]]) -> dict[str, float]:
    """Of each metric, its mean over peers (under its own name), smallest and largest value, and the gap between."""
    found = {}
    for metric in of_peers[0]:
        values = [metrics[metric] for metrics in of_peers]
        low, high = min(values), max(values)
        found[metric] = sum(values) / len(values)
        found |= {f"{metric}_min": low, f"{metric}_max": high, f"{metric}_gap": high - low}
    return found
