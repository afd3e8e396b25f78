"""Writes what happens in a run of peers as rows of its tables, counts totals, and measures how a changing graph mixes:
the second eigenvalue of the mean W, and the mass of a push-sum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence

import numpy as np

from raysim.engine.recorder import Columns, Recorder, columns_of, measured_columns
from raysim.scenario.run_settings import RunSettings
from raysim.terms import Traffic
from raysim.workers.replies import Evaluated, Measured, TrainedMember
from raysim.world.peers_happening import Exchanged, Joined, Mixed
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
        trained: Sequence[tuple[TrainedMember, str]] = (),
        measured: Measured | None = None,
        foreseen: list[int] | None = None,
    ) -> None:
        """Writes a round: its mixes and messages.

        trained: for each mix, what training gave and the worker that did it; () in a dry run. measured: what only a
        real round measures. foreseen: in a dry run, the bytes of a message for each mix, if they are known.
        """
        mixed, samples = exchanged.mixed, [self._samples[mix.peer] for mix in exchanged.mixed]
        sent = [len(mix.sent) for mix in mixed]
        arrived = [sum(message.arrives is not None for message in mix.sent) for mix in mixed]
        numbers = [training.numbers for training, _ in trained]
        sizes = [one.columns["up_bytes"] for one in numbers] or foreseen or []
        up, down = ([size * count for size, count in zip(sizes, counts, strict=False)] for counts in (sent, arrived))
        columns = _of_mixes(exchanged, samples)
        if trained:
            workers = [worker for _, worker in trained]
            columns |= {**measured_columns(numbers), "worker": workers}
        if sizes:
            columns |= {"up_bytes": up}
        self.writer.add_columns("updates", columns, [one.own for one in numbers])
        self.writer.add_columns("exchanges", _of_messages(exchanged, sizes))
        self.totals.update(sent=sum(sent), lost=sum(sent) - sum(arrived))
        self.step(
            exchanged,
            [heard.age for mix in mixed for heard in mix.inbox],
            measured,
            Traffic(sum(up), sum(down)) if measured is not None or foreseen is not None else None,
            used=len(mixed),
            discarded=0,
            in_flight=0 if self._synchronous else len(self._samples),
            samples=sum(samples),
        )
        self.totals.update(dispatched=len(mixed), used=len(mixed), steps=1, rounds=1)
        self.ended_by = exchanged.ends

    def evaluated(
        self, exchanged: Exchanged, of_peers: list[tuple[int, dict[str, Evaluated]]], apart: dict[str, float]
    ) -> None:
        """Writes an evaluation. of_peers: by peer and split. apart: peers' distances to their mean."""
        for peer, splits in of_peers:
            for split, found in splits.items():
                self.evaluation(exchanged, split, found.values, found.samples, subject="peer", member=peer)
        for split in of_peers[0][1]:
            samples = sum(splits[split].samples for _, splits in of_peers)
            values = spread([splits[split].values for _, splits in of_peers])
            self.evaluation(exchanged, split, values, samples, subject="peers")
        first = next(iter(of_peers[0][1]))  # distances belong to no split, but tuning reads the first one
        self.evaluation(exchanged, first, apart, 0, subject="peers")


def _of_mixes(exchanged: Exchanged, samples: list[int]) -> Columns:
    """Returns the rows of a round's mixes and of the training before each, without what training fills.

    samples: of each mix.
    """
    mixed = exchanged.mixed
    ages = [[heard.age for heard in mix.inbox] for mix in mixed]
    return {
        **columns_of(exchanged, len(mixed)),
        "virtual_time": [mix.time for mix in mixed],
        "client": [mix.peer for mix in mixed],
        "dispatch": [mix.serial for mix in mixed],
        "status": ["used"] * len(mixed),
        "dispatched_at": [mix.began for mix in mixed],
        "arrived_at": [mix.trained for mix in mixed],
        "version": [mix.number for mix in mixed],
        "staleness": [sum(of_mix) / len(of_mix) if of_mix else 0.0 for of_mix in ages],
        "samples": samples,
    }


def _of_messages(exchanged: Exchanged, sizes: Sequence[int]) -> Columns:
    """Returns the rows of the messages that were sent before a round's mixes.

    sizes: bytes of a message for each mix; () in a dry run that does not know them.
    """
    sent = [message for mix in exchanged.mixed for message in mix.sent]
    of_sizes = [size for size, mix in zip(sizes, exchanged.mixed, strict=False) for _ in mix.sent]
    return {
        **columns_of(exchanged, len(sent)),
        "virtual_time": [message.time for message in sent],
        "source": [message.source for message in sent],
        "target": [message.target for message in sent],
        "arrived_at": [message.arrives for message in sent],
        **({"bytes": of_sizes} if sizes else {}),
    }


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


LARGEST = 256  # peers for which eigenvalues are computed: of more, they take seconds


class Agreement:
    """What peers have heard so far. It follows from the timeline alone."""

    def __init__(
        self,
        peers: int,
        step: float,
        *,
        pushes: bool,
        loses: bool = False,
        later: Container[int] = (),
        joins: str = "",
    ) -> None:
        """step: gamma. pushes: whether peers mix by shares of what they send, not by weights of what they hear. loses:
        whether mass goes with lost messages. later: peers that are not there at first, and start as `world.join`,
        joins, says."""
        self._joins, self._loses = joins, loses
        self._step, self._pushes = step, pushes
        self._sum = np.zeros((peers, peers) if peers <= LARGEST else (0, 0))  # of W, over each peer's mixes
        self._mixes = np.zeros(peers, dtype=np.int64)
        self._receivers: dict[int, tuple[int, ...]] = {}  # to whom each peer sent first
        self._changed = False  # whether a peer has sent to others since
        self._mass = [float(peer not in later) for peer in range(peers)]  # the weight of each peer in a push-sum
        self._sent: dict[tuple[int, int], float] = {}  # by peer and number of a message: what its shares are taken of
        self._left = Counter[tuple[int, int]]()  # how many will yet hear it

    def add(self, exchanged: Exchanged) -> None:
        """Adds the mixes of a round."""
        for mix in exchanged.changes:
            if isinstance(mix, Joined):
                self._mass[mix.peer] = float(self._joins != "empty")
                continue
            peer, heard = mix.peer, [(one.peer, one.share if self._pushes else one.weight) for one in mix.inbox]
            given = 1 - mix.kept if self._pushes else sum(weight for _, weight in heard)
            if self._pushes:
                self._push(mix, 1 - self._step * given)
            if len(self._sum):
                self._sum[peer, peer] += 1 - self._step * given
                for source, weight in heard:
                    self._sum[peer, source] += self._step * weight
            self._mixes[peer] += 1
            receivers = tuple(message.target for message in mix.sent)
            self._changed = self._changed or self._receivers.setdefault(peer, receivers) != receivers

    def _push(self, mix: Mixed, kept: float) -> None:
        """Follows the weights of a push-sum through a mix. kept: what the peer keeps of its own."""
        own = self._mass[mix.peer]
        self._sent[mix.peer, mix.number] = own
        self._left[mix.peer, mix.number] += sum(message.arrives is not None for message in mix.sent)
        after = kept * own
        for one in mix.inbox:
            key = (one.peer, one.number)
            # Within a round, a neighbour that mixes later still has what it sent.
            after += self._step * one.share * self._sent.get(key, self._mass[one.peer])
            self._left[key] -= 1
        self._mass[mix.peer] = after
        for key in [(mix.peer, mix.number), *((one.peer, one.number) for one in mix.inbox)]:
            if key in self._sent and self._left[key] == 0:
                del self._sent[key], self._left[key]

    @property
    def measured(self) -> dict[str, float]:
        """The numbers to show with an evaluation; none as long as the graph is the same and no mass is lost."""
        found = {"mass": sum(self._mass)} if self._loses or (self._changed and self._pushes) else {}
        if len(self._sum) and self._changed:
            counts = np.maximum(self._mixes, 1)[:, None]
            mean = self._sum / counts + np.diag((self._mixes == 0).astype(float))
            found["second_eigenvalue"] = float(np.sort(np.abs(np.linalg.eigvals(mean)))[-2])
        return found
