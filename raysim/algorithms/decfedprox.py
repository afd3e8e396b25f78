"""FedProx without a server (DecFedProx): the mean of the neighbours' models stands for the server's model.

Equation (22) of Taya, Nishiyama, Sezaki, Function-space ADMM for decentralized federated learning: A control theoretic
perspective, arXiv 2605.09356. Its proximal term has no factor 1/2.

Differences from the paper: the mean is taken over the models that arrived last, as neighbours sent them before mixing,
so that nothing more has to travel; and any mixing weights are allowed.
"""

from raysim.algorithms.decfedavg import DecFedAvg
from raysim.algorithms.peer import Inbox
from raysim.algorithms.signatures import Record, Task
from raysim.parts.part import NonNegative


class DecFedProx(DecFedAvg):
    """DecFedAvg whose local training is pulled towards the mean of the neighbours' models (Taya et al. 2026)."""

    name: str = "decfedprox"
    alpha: NonNegative = 0.1
    """Weight of the proximal term alpha |w - M|^2 in a peer's objective, where M is the mean of its neighbours' models.
    The paper tunes it over 0.01 to 0.5. 0: DecFedAvg."""

    def init(self, task: Task) -> Record:
        return {**super().init(task), "mean": task.received.w}  # mean: M of the last messages

    def local(self, task: Task, state: Record) -> tuple[Record, Record]:
        mean = state["mean"]
        trained = task.train(self.personal(task, state), correction=lambda w: 2 * self.alpha * (w - mean))
        return {"mean": mean}, trained.send(w=trained.w)

    def mix(self, task: Task, draft: Record, inbox: Inbox) -> Record:
        mean = inbox.mean("w") if inbox.messages else draft["mean"]
        return {**super().mix(task, draft, inbox), "mean": mean}
