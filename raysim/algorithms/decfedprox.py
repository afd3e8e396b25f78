"""FedProx without a server: the neighbours' mean stands for the server's model.

(22) of Taya, Nishiyama, Sezaki, Function-space ADMM for decentralized federated learning: A control theoretic
perspective, arXiv 2605.09356, whose proximal term has no factor 1/2. Differences: the mean is of the models that came
last, as they were sent, before their peers mixed, so that nothing more needs to travel; and mixing is by any weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raysim.algorithms.peer import Inbox, Peer
from raysim.part import NonNegative
from raysim.terms import Record

if TYPE_CHECKING:
    from raysim.local.task import Task


class DecFedProx(Peer):
    """Local training that is pulled towards the neighbours' mean, then a weighted mean with their models."""

    name: str = "decfedprox"
    alpha: NonNegative = 0.1
    """Of alpha |w - M|^2 in a peer's objective; the paper tunes it over 0.01 to 0.5."""

    def init(self, task: Task) -> Record:
        w = task.received.w
        return {"w": w, "buffers": task.received.buffers, "mean": w}  # mean: M, the last received

    def local(self, task: Task, state: Record) -> tuple[Record, Record]:
        mean = state["mean"]
        trained = task.train(self.personal(task, state), correction=lambda w: 2 * self.alpha * (w - mean))
        return {"mean": mean}, trained.send(w=trained.w)

    def mix(self, task: Task, draft: Record, inbox: Inbox) -> Record:
        mean = inbox.mean("w") if inbox.messages else draft["mean"]
        return {"w": inbox.mixed("w"), "buffers": inbox.mixed("buffers"), "mean": mean}
