"""Messages between peers, in virtual time: how long they take, when they arrive, and which are lost."""

import math
from collections.abc import Iterable
from typing import ClassVar, Literal, NamedTuple

from raysim.parts.errors import BadInput
from raysim.parts.rng import Stream
from raysim.world import distribution
from raysim.world.mixing import Neighbours


class EdgeDelay(distribution.Distribution):
    """How long messages between neighbours take, in seconds."""

    drawn_in: ClassVar[str] = "s"

    redraw: Literal["message", "edge"] = "message"
    """When a delay is drawn. message: for each message. edge: once for each pair of neighbours; it then holds both ways
    during the whole run."""

    def durations(self, stream: Stream, source: int, number: int, targets: tuple[int, ...]) -> list[float]:
        """Returns the delay of a peer's message `number` (0, 1, ...) to each target.

        stream: keyed draws of this run's messages.
        """
        if self.redraw == "edge":
            return [self.draw(stream(min(source, target), max(source, target))) for target in targets]
        generator = stream(source, number)
        return [self.draw(generator) for _ in targets]


EDGE_DELAYS = distribution.each_drawn(EdgeDelay, "delays of messages")
ConstantEdgeDelay, HalfNormalEdgeDelay, LogNormalEdgeDelay, UniformEdgeDelay, ExponentialEdgeDelay = EDGE_DELAYS


# --- messages ---------------------------------------------------------------------------------------------------------


class Sent(NamedTuple):
    """A message to a neighbour."""

    source: int
    target: int
    number: int  # messages that the source sent before it
    time: float
    arrives: float | None  # None: the message is lost
    share: float = 0.0  # A_ki, of what the sender pushes; 0 if it is lost and the sender keeps that


class Network:
    """Draws which messages are lost, and how long each takes.

    Draws are keyed by the sender and the number of its message, and delays with `redraw: edge` by the edge.
    """

    def __init__(self, loss: float, delay: EdgeDelay, seed: int, *, keeps_lost: bool = False) -> None:
        """loss: probability that a message is lost. delay: how long one takes. keeps_lost: whether a sender keeps the
        shares of messages that are lost."""
        self._loss, self._delay, self._keeps_lost = loss, delay, keeps_lost
        self._losses, self._delays = Stream(seed, "message loss"), Stream(seed, "message delay")

    def send(self, source: int, number: int, time: float, near: Neighbours) -> tuple[Sent, ...]:
        """Sends one message to all receivers. Returns what happens to it for each of them."""
        targets = near.receivers
        draws = self._losses(source, number).random(len(targets)) if self._loss else [1.0] * len(targets)
        lost = [draw < self._loss for draw in draws]
        delays = self._delay.durations(self._delays, source, number, targets)
        if wrong := [delay for delay in delays if not 0 <= delay < math.inf]:
            text = f"a message must take a finite number of seconds, 0 or more, got {wrong[0]!r}"
            raise BadInput("world.edge_delay", f"{text} for message {number} of peer {source}")
        return tuple(
            Sent(
                source, target, number, time, None if gone else time + delay, share * (not (gone and self._keeps_lost))
            )
            for target, gone, delay, share in zip(targets, lost, delays, near.shares, strict=True)
        )


class Mail:
    """The messages to each peer: the newest one of each sender that was looked up, and all later ones, which may be
    under way; or, where messages are taken out, all that were not."""

    def __init__(self) -> None:
        self._to: dict[int, dict[int, list[Sent]]] = {}  # by target and source, in order of sending

    def put(self, messages: Iterable[Sent]) -> None:
        """Adds the messages that are not lost."""
        for sent in messages:
            if sent.arrives is not None:
                self._to.setdefault(sent.target, {}).setdefault(sent.source, []).append(sent)

    def newest(self, source: int, target: int, time: float) -> Sent | None:
        """Returns the last message sent among those that have arrived by a time, which must not decrease, or None."""
        sent = self._to.get(target, {}).get(source, [])
        arrived = [place for place, message in enumerate(sent) if _has_arrived(message, time)]
        if not arrived:
            return None
        del sent[: arrived[-1]]  # messages that a newer one has overtaken
        return sent[0]

    def keep(self, target: int, sources: Iterable[int]) -> None:
        """Drops the messages to a peer from all but these sources, whose edges are no longer there."""
        of_target = self._to.get(target, {})
        for source in of_target.keys() - set(sources):
            del of_target[source]

    def taken(self, target: int, time: float) -> list[Sent]:
        """Takes out the messages to a peer that have arrived by a time, and returns them in order of sending."""
        arrived = []
        for sent in self._to.get(target, {}).values():
            arrived += [message for message in sent if _has_arrived(message, time)]
            sent[:] = [message for message in sent if not _has_arrived(message, time)]
        return sorted(arrived, key=lambda message: (message.time, message.source, message.number))

    @property
    def held(self) -> set[tuple[int, int]]:
        """Source and number of every message that may still be looked up or taken."""
        everything = (sent for of_target in self._to.values() for sent in of_target.values())
        return {(message.source, message.number) for sent in everything for message in sent}


def _has_arrived(message: Sent, time: float) -> bool:
    return message.arrives is not None and message.arrives <= time
