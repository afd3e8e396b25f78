"""The base of algorithms without a server: one frozen part that says what a peer does alone and with its neighbours.

In each round of a peer, `local` makes a draft, which the peer keeps, and a message to all neighbours; then `mix` makes
the peer's next state from the draft and the messages that have arrived. State, draft and message are Records. They are
passed in and returned, and never changed in place.
"""

from abc import abstractmethod
from typing import ClassVar, NamedTuple

from raysim.algorithms.signatures import Local, Model, Problems, Setting, Task, Tensor
from raysim.schedules import Schedulable
from raysim.terms import Record


class Inbox(NamedTuple):
    """What a peer mixes: its own message and those of its neighbours, without messages that were lost."""

    own: Record  # the message that the peer itself sent
    messages: list[Record]  # the newest message that has arrived from each neighbour, in order of their numbers
    weights: list[float]  # the weight W_ij of each message; the peer's own weight is 1 minus their sum

    def mean(self, key: str) -> Tensor:
        """Returns M_i[x], the plain mean of an entry over neighbours; the peer's own entry if there are no messages."""
        if not self.messages:
            return self.own[key]
        total = self.messages[0][key].clone()
        for message in self.messages[1:]:
            total.add_(message[key])
        return total.div_(len(self.messages))

    def mixed(self, key: str) -> Tensor:
        """Returns the weighted mean of an entry over neighbours and the peer itself, sum_j W_ij x_j."""
        mixed = self.own[key] * (1 - sum(self.weights))
        for weight, message in zip(self.weights, self.messages, strict=True):
            mixed.add_(message[key], alpha=weight)
        return mixed


class Peer(Schedulable):
    """An algorithm without a server. A subclass adds its `name`.

    A class of your own runs as `algorithm: my_module:MyClass`. One that comes with raysim is imported in
    `raysim/algorithms/__init__.py`, in one line, and has no other place to be registered.

    BatchNorm's buffers are treated like parameters: a state with `w` also holds `buffers`, and an algorithm whose
    messages carry `w` sends and mixes both. In most models `buffers` is empty, and costs nothing.
    """

    keeps_personal: ClassVar[bool] = False
    """Whether peers keep the personal part of the model, and send the shared part only. `model.norm` can then be
    local."""

    name: str

    def embeds(self, scenario: Setting) -> bool | str:
        """Whether it calls `task.embed`; or, instead of true, the name of the sub-module that it embeds with. A run
        then checks at its start that the model can embed."""
        return False

    def samples_seen(self, local: Local, samples: int) -> int:
        """Returns for how many samples `local` computes gradients. Computed delays follow that.

        samples: the number of samples that the peer holds. A sample counts once for each time that it is used.
        Predictions and embeddings do not count here, nor does what `mix` does: raysim measures them.
        """
        return local.total_samples(samples)

    def problems(self, scenario: Setting) -> Problems:
        """Yields what the algorithm cannot do with the rest of the scenario. Paths start at the scenario."""
        return ()

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
