"""An algorithm without a server: say here which paper it is from, and how it differs from the paper."""

from raysim.algorithms import Inbox, Peer, Record
from raysim.algorithms.signatures import Task
from raysim.parts.part import Fraction


class PeerAlgorithmTemplate(Peer):
    """Peers train, and move some of the way to the mean of their own and their neighbours' models."""

    name: str = "template"
    share: Fraction = 1.0
    """How much of the way to the mean a peer goes."""

    def init(self, task: Task) -> Record:  # a peer's first state; `buffers` are those of BatchNorm, and often empty
        return {"w": task.received.w, "buffers": task.received.buffers}

    def local(self, task: Task, state: Record) -> tuple[Record, Record]:  # what `mix` gets; the message to all
        trained = task.train(self.personal(task, state))
        return {}, trained.send(w=trained.w)

    def mix(self, task: Task, draft: Record, inbox: Inbox) -> Record:  # the peer's next state; never changed in place
        w = inbox.own["w"] + self.share * (inbox.mixed("w") - inbox.own["w"])
        return {"w": w, "buffers": inbox.mixed("buffers")}
