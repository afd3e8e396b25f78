"""Federated averaging without a server (DecFedAvg): local training, then mixing.

Equation (21) of Taya, Nishiyama, Sezaki, Function-space ADMM for decentralized federated learning: A control theoretic
perspective, arXiv 2605.09356. All peers train before anybody mixes, so this is not the recursion of D-PSGD.

Differences from the paper: any mixing weights are allowed. The paper's averaging rate is `beta` of the topology's
weights `neighbours`.
"""

from raysim.algorithms.peer import Inbox, Peer
from raysim.algorithms.signatures import Record, Task


class DecFedAvg(Peer):
    """Local training, then a weighted mean with the neighbours' models (Taya et al. 2026)."""

    name: str = "decfedavg"

    def local(self, task: Task, state: Record) -> tuple[Record, Record]:
        trained = task.train(self.personal(task, state))
        return {}, trained.send(w=trained.w)

    def mix(self, task: Task, draft: Record, inbox: Inbox) -> Record:
        return {"w": inbox.mixed("w"), "buffers": inbox.mixed("buffers")}
