"""Messages between peers, in virtual time: when they arrive, and which are lost."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from raysim.rng import Stream
from raysim.world import Topology, World


class Sent(NamedTuple):
    """A message to a neighbour."""

    source: int
    target: int
    number: int  # of the source's messages before
    time: float
    arrives: float | None  # None: it is lost


class Network:
    """Draws what becomes of messages: by the sender and the number of its message, or delays by the edge."""

    def __init__(self, world: World, topology: Topology, peers: int, seed: int) -> None:
        self._loss, self._delay = world.loss, world.edge_delay
        self._losses, self._delays = Stream(seed, "message loss"), Stream(seed, "message delay")
        self.neighbours = lru_cache(maxsize=1)(lambda epoch: topology.neighbours(peers, seed, epoch))

    def send(self, source: int, number: int, time: float, targets: tuple[int, ...]) -> tuple[Sent, ...]:
        """The same message to all targets."""
        draws = self._losses(source, number).random(len(targets)) if self._loss else [1.0] * len(targets)
        lost = [draw < self._loss for draw in draws]
        delays = self._delay.durations(self._delays, source, number, targets)
        return tuple(
            Sent(source, target, number, time, None if gone else time + delay)
            for target, gone, delay in zip(targets, lost, delays, strict=True)
        )


class Mail:
    """Of each edge, the newest message that was looked up, and all later ones, which may be under way."""

    def __init__(self) -> None:
        self._of_edge: dict[tuple[int, int], list[Sent]] = {}  # in order of sending

    def put(self, messages: Iterable[Sent]) -> None:
        """Those that are not lost."""
        for sent in messages:
            if sent.arrives is not None:
                self._of_edge.setdefault((sent.source, sent.target), []).append(sent)

    def newest(self, source: int, target: int, time: float) -> Sent | None:
        """The last sent of those that have arrived by then, if any; times must not go back."""
        sent = self._of_edge.get((source, target), [])
        arrived = [
            place for place, message in enumerate(sent) if message.arrives is not None and message.arrives <= time
        ]
        if not arrived:
            return None
        del sent[: arrived[-1]]  # overtaken
        return sent[0]

    @property
    def held(self) -> set[tuple[int, int]]:
        """Sources and numbers of all messages that may be looked up again."""
        return {(message.source, message.number) for sent in self._of_edge.values() for message in sent}
