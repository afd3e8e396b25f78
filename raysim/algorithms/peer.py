"""The base of algorithms without a server: one frozen part that says what a peer does alone and with its neighbours.

In each round of a peer, `local` makes a draft, which the peer keeps, and a message to all neighbours; then `mix` makes
the peer's next state from the draft and the messages that have arrived. State, draft and message are Records. They are
passed in and returned, and never changed in place.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal, NamedTuple

from raysim.algorithms.central import Algorithm
from raysim.algorithms.signatures import Model, Problem, Problems, Record, Setting, Task, Tensor

Weights = Literal["mean", "pull", "push", "both", "symmetric"]


class Inbox(NamedTuple):
    """What a peer mixes: its own message and those of its neighbours, without messages that were lost."""

    own: Record  # the message that the peer itself sent, as it was before transforms of `uplink`
    messages: list[Record]  # the newest of each neighbour, in order of their numbers; or all, as `Peer.consumes` says
    weights: list[float]  # the weight W_ij of each message; the peer's own weight is 1 minus their sum
    decoded: Record | None = None  # the peer's own message as neighbours decode it; None if that is `own`
    step: float = 1.0  # gamma, how far towards the weighted mean `mixed` goes
    shares: Sequence[float] = ()  # the share A_ij of each message that its sender pushed to this peer
    kept: float = 1.0  # the share A_ii of its own message that the peer did not push to others

    def mean(self, key: str) -> Tensor:
        """Returns M_i[x], the plain mean of an entry over neighbours; the peer's own entry if there are no messages."""
        if not self.messages:
            return self.own[key]
        total = self.messages[0][key].clone()
        for message in self.messages[1:]:
            total.add_(message[key])
        return total.div_(len(self.messages))

    def mixed(self, key: str) -> Tensor:
        """Returns the weighted mean of an entry over neighbours and the peer itself, sum_j W_ij x_j.

        Where transforms of `uplink` make y_i of a message x_i, or `topology.step` is a gamma other than 1, it is
        x_i + gamma sum_j W_ij (y_j - y_i), which leaves the mean over all peers as it was.
        """
        mixed = self.own[key] * (1 - sum(self.weights))
        if self.decoded is not None or self.step != 1.0:
            mixed = self.own[key] - (self.decoded or self.own)[key] * (self.step * sum(self.weights))
        for weight, message in zip(self.weights, self.messages, strict=True):
            mixed.add_(message[key], alpha=self.step * weight)
        return mixed

    def pushed(self, key: str) -> Tensor:
        """Returns the sum of what was pushed to the peer and of what it kept, sum_j A_ij x_j, in which columns of A sum
        to 1.

        Where transforms of `uplink` make y_i of a message x_i, or gamma is not 1, the peer keeps x_i - gamma (1 - A_ii)
        y_i, so that nothing of the sum over all peers is lost.
        """
        pushed = self.own[key] * self.kept
        if self.decoded is not None or self.step != 1.0:
            pushed = self.own[key] - (self.decoded or self.own)[key] * (self.step * (1 - self.kept))
        for share, message in zip(self.shares, self.messages, strict=True):
            pushed.add_(message[key], alpha=self.step * share)
        return pushed


class Peer(Algorithm):
    """An algorithm without a server. A subclass adds its `name`.

    BatchNorm's buffers are treated like parameters: a state with `w` also holds `buffers`, and an algorithm whose
    messages carry `w` sends and mixes both. In most models `buffers` is empty, and costs nothing.
    """

    pairs: ClassVar[bool] = False
    """Whether a peer that has trained exchanges models with one neighbour, instead of sending to all. Its message is
    then its state, which `local` returns as it is. The peer that is asked mixes, too, with an empty draft, while its
    own training continues."""

    mixes: ClassVar[Weights] = "pull"
    """Which weights it needs. pull: W_ij of what peer i hears, where rows sum to 1, as in `Inbox.mixed`; peers count
    equally only if columns sum to 1, too. push: shares A_ij of what peer j sends, where columns sum to 1, as in
    `Inbox.pushed`. both: these two. symmetric: those of pull, on an undirected graph. mean: none of them, on an
    undirected graph."""

    consumes: ClassVar[bool] = False
    """Whether an inbox holds all messages that have arrived since the peer mixed last, each exactly once and in order
    of sending, as sums need it. Otherwise it holds the newest message of each neighbour, as often as the peer mixes."""

    sends_first: ClassVar[bool] = False
    """Whether a peer that does not wait sends its message when it begins to train, and not when it has trained. Its
    message is then its state, too."""

    @property
    def sends_state(self) -> bool:
        """Whether a peer's message is its state, so that it has one to send also where it does not train again."""
        return self.pairs or self.sends_first

    @property
    def lag(self) -> int:
        """How many rounds after it was sent a message is mixed, where peers wait for each other."""
        return 0

    def init(self, task: Task) -> Record:
        """Returns a peer's first state. In every method, `task.received` is the model that all peers start from."""
        return {"w": task.received.w, "buffers": task.received.buffers}

    @abstractmethod
    def local(self, task: Task, state: Record) -> tuple[Record, Record]:
        """Trains, and returns the draft for `mix` and the message to every neighbour."""

    @abstractmethod
    def mix(self, task: Task, draft: Record, inbox: Inbox) -> Record:
        """Returns the peer's next state. The inbox may hold no messages."""

    def personal(self, task: Task, state: Record) -> Model:
        """Returns the model that the peer predicts with."""
        return task.received.replace(w=state["w"], buffers=state["buffers"])


def in_rounds_only(scenario: Setting, why: str, other: str) -> Problems:
    """Yields that peers must wait for each other, if they do not. other: an algorithm that goes without."""
    if not scenario.world.synchronous:
        text = f"must be true for {scenario.algorithm.name}, {why}, got false"
        yield Problem("world.synchronous", f"{text}; leave it out, or take {other}")


def beyond_one_step(scenario: Setting) -> Problems:
    """Yields what makes local training anything but one step of plain SGD, for algorithms that mix after each step."""
    local = scenario.local
    for key, plain, got in (("steps", 1, local.steps or "epochs"), *local.beyond_sgd(), *local.beyond_one_rate()):
        if got != plain:
            cure = "set `local.steps: 1`" if key == "steps" else "leave it out"
            text = f"must be {plain} for {scenario.algorithm.name}, which takes one plain step a round, got {got}"
            yield Problem(f"local.{key}", f"{text}; {cure}")
