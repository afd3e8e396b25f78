"""Federated averaging without a server: adapt, then combine.

(21) of Taya, Nishiyama, Sezaki, Function-space ADMM for decentralized federated learning: A control theoretic
perspective, arXiv 2605.09356. Its averaging rate is the `beta` of the topology's weights `neighbours`; any other
weights do, too. All peers train before anybody mixes, so this is not the recursion of D-PSGD.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raysim.algorithms.peer import Inbox, Peer
from raysim.terms import Record

if TYPE_CHECKING:
    from raysim.local.task import Task


class DecFedAvg(Peer):
    """Local training, then a weighted mean with the neighbours' models."""

    name: str = "decfedavg"

    def local(self, task: Task, state: Record) -> tuple[Record, Record]:
        trained = task.train(self.personal(task, state))
        return {}, trained.send(w=trained.w)

    def mix(self, task: Task, draft: Record, inbox: Inbox) -> Record:
        return {"w": inbox.mixed("w"), "buffers": inbox.mixed("buffers")}
