"""What happens in a run of peers, as its timeline tells it."""

from typing import NamedTuple

from raysim.terms import Moment
from raysim.world.network import Sent


class Next(NamedTuple):
    """What follows a new state of a peer, or its first one: more training, an evaluation, both or neither."""

    trains: bool  # the peer trains from it, because it will mix once more before the end
    kept: bool  # the state is evaluated, or is the peer's last


class Heard(NamedTuple):
    """A neighbour's message that a peer mixes."""

    peer: int
    number: int  # messages of that peer before it
    weight: float  # W_ij
    age: float  # virtual time since it was sent; 0 if all wait for all
    share: float  # A_ij, of what the neighbour pushed


class Answered(NamedTuple):
    """A peer that another one asks to exchange models. It mixes as well, while its training continues."""

    peer: int
    number: int  # mixes of this peer before it
    kept: bool  # whether the state is evaluated, or is the peer's last


class Mixed(NamedTuple):
    """A mix: a peer has trained and sent a message, and mixes the messages that it has received."""

    serial: int  # number of the mix in the run
    peer: int
    number: int  # mixes of this peer before it; also the number of the message that it sends
    began: float  # when it began to train
    trained: float  # when its training was over and its message was sent
    time: float  # when it mixes
    inbox: tuple[Heard, ...]  # in order of neighbours
    sent: tuple[Sent, ...]
    next: Next  # what follows the mixed state
    answer: Answered | None = None  # the peer of which it asked an exchange, if that took place

    @property
    def changed(self) -> tuple[tuple[int, int], ...]:
        """The peers whose models it changes, each with the number of its mixes before."""
        own = (self.peer, self.number)
        return (own, self.answer[:2]) if self.answer else (own,)

    @property
    def kept(self) -> float:
        """The share A_ii of its own message, which the peer does not push to others."""
        return 1 - sum(message.share for message in self.sent)


class Joined(NamedTuple):
    """A peer comes that was not there at first, and starts from what `world.join` says."""

    peer: int
    time: float
    of: int | None  # the peer whose model it copies
    before: int  # how many mixes of its round come before it
    next: Next = Next(trains=True, kept=True)

    @property
    def changed(self) -> tuple[tuple[int, int], ...]:
        """As if a mix before its first one made its state."""
        return ((self.peer, -1),)


class Exchanged(NamedTuple):
    """A round: every peer that is there has mixed once or, if peers do not wait, there were as many mixes as peers."""

    round: int
    time: float
    mixed: tuple[Mixed, ...]  # in order of time
    evaluated: bool  # whether models are evaluated after it
    ends: str | None  # what ends the run with it: rounds, updates or virtual_time; None if it continues
    present: tuple[int, ...] | None = None  # the peers that are there at its end, who are evaluated; None: all
    joined: tuple[Joined, ...] = ()  # in order of time

    @property
    def version(self) -> int:
        """Number of rounds that are over."""
        return self.round + 1

    @property
    def moment(self) -> Moment:
        """The end of the round."""
        return Moment(self.version, self.version, self.time)

    @property
    def changes(self) -> list[Mixed | Joined]:
        """All that gives peers other states, in order."""
        changes: list[Mixed | Joined] = [*self.mixed]
        for joined in reversed(self.joined):
            changes.insert(joined.before, joined)
        return changes
