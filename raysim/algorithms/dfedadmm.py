"""ADMM without a server, on parameters (DFedADMM).

Li, Shen, Li, Yin, Tao, DFedADMM: Dual constraints controlled model inconsistency for decentralized federated learning,
arXiv 2308.08290. The paper's lambda is 1 / `penalty` here, and its variant DFedADMM-SAM is `local.gradients: [sam]`.

Differences from the paper: its steps can be read in two ways. By default they are those of FedSpeed, by some of the
same authors, with neighbours in the place of the server; `mix_corrected: false` is the other reading. Any mixing
weights are allowed.
"""

from raysim.algorithms.decfedavg import DecFedAvg
from raysim.algorithms.peer import Inbox
from raysim.algorithms.signatures import Record, Task
from raysim.parts.part import Positive


class DFedADMM(DecFedAvg):
    """ADMM on parameters: duals correct the peers' local training, before a weighted mean (Li et al. 2023)."""

    name: str = "dfedadmm"
    penalty: Positive = 0.1
    """Penalty of the distance from where a peer's local training starts (1 / lambda)."""
    mix_corrected: bool = True
    """true: peers mix models that the dual has corrected. false: they mix models as training left them."""

    def init(self, task: Task) -> Record:
        return {**super().init(task), "dual": task.received.w * 0}

    def local(self, task: Task, state: Record) -> tuple[Record, Record]:
        start, dual = state["w"], state["dual"]
        trained = task.train(self.personal(task, state), correction=lambda w: self.penalty * (w - start) - dual)
        after = dual - self.penalty * (trained.w - start)
        sent = trained.w - after / self.penalty if self.mix_corrected else trained.w
        return {"dual": after}, trained.send(w=sent)

    def mix(self, task: Task, draft: Record, inbox: Inbox) -> Record:
        return {**super().mix(task, draft, inbox), "dual": draft["dual"]}
