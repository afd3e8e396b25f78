"""Exact diffusion: peers adapt, correct, and then combine, so that a constant rate leaves no gap.

Yuan, Ying, Zhao, Sayed, Exact diffusion for distributed optimization and learning, part I: Algorithm development, IEEE
Transactions on Signal Processing 67, 2019: psi_i^{t+1} = x_i^t - lr g_i(x_i^t), phi_i = psi_i^{t+1} + x_i^t - psi_i^t,
and x_i^{t+1} = sum_j V_ij phi_j, with V = (I + W) / 2 and psi_i^0 = x_i^0. NIDS of Li, Shi, Yan, A decentralized
proximal-gradient method with network independent step-sizes and separated convergence rates, IEEE Transactions on
Signal Processing 67, 2019, is the same recursion without a non-smooth term, but for its first step, in which peers do
not combine.

Differences from the paper: the gradient is that of one mini-batch, whose noise is not corrected. It needs symmetric
weights, as there, and that all mix at once.
"""

from raysim.algorithms.extra import EXTRA
from raysim.algorithms.peer import Inbox
from raysim.algorithms.signatures import Record, Task


class ExactDiffusion(EXTRA):
    """Models that have stepped are corrected by what the last combination changed, then combined (Yuan et al. 2019)."""

    name: str = "exact_diffusion"

    def init(self, task: Task) -> Record:
        return {"w": task.received.w, "buffers": task.received.buffers, "adapted": task.received.w}

    def local(self, task: Task, state: Record) -> tuple[Record, Record]:
        trained = task.train(self.personal(task, state))
        return {"adapted": trained.w}, trained.send(w=trained.w + (state["w"] - state["adapted"]))

    def mix(self, task: Task, draft: Record, inbox: Inbox) -> Record:
        w = (inbox.own["w"] + inbox.mixed("w")) / 2
        return {"w": w, "buffers": inbox.mixed("buffers"), "adapted": draft["adapted"]}
