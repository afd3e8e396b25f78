"""EXTRA: D-PSGD with a correction, which reaches the optimum of all peers' objectives with a constant rate.

Shi, Ling, Wu, Yin, EXTRA: An exact first-order algorithm for decentralized consensus optimization, SIAM Journal on
Optimization 25, 2015, Algorithm 1 with its default W~ = (I + W) / 2, in the form that sums what mixing changed so far:
x_i^{t+1} = sum_j W_ij x_j^t - lr g_i(x_i^t) + c_i^t, and c_i^{t+1} = c_i^t + (sum_j W_ij x_j^t - x_i^t) / 2, with c_i^0
= 0. The paper's iteration is the difference of two such steps.

Differences from the paper: the gradient is that of one mini-batch, whose noise is not corrected. It needs symmetric
weights, as there, and that all mix at once; the corrections then sum to zero. Lost messages break that, and so shift
the limit.
"""

from typing import ClassVar

from raysim.algorithms.peer import Inbox, Peer, beyond_one_step, in_rounds_only
from raysim.algorithms.signatures import Problems, Record, Setting, Task


class EXTRA(Peer):
    """D-PSGD plus half of all that mixing changed before, so that a constant rate leaves no gap (Shi et al. 2015)."""

    name: str = "extra"
    mixes: ClassVar = "symmetric"

    def problems(self, scenario: Setting) -> Problems:
        yield from beyond_one_step(scenario)
        yield from in_rounds_only(scenario, "whose corrections sum to zero only if all mix at once", "d_psgd")

    def init(self, task: Task) -> Record:
        return {**super().init(task), "correction": task.received.w * 0}

    def local(self, task: Task, state: Record) -> tuple[Record, Record]:
        trained = task.train(self.personal(task, state))
        draft = {**trained.send(w=trained.w), "correction": state["correction"]}
        return draft, {"w": state["w"], "buffers": state["buffers"]}

    def mix(self, task: Task, draft: Record, inbox: Inbox) -> Record:
        mixed = {key: inbox.mixed(key) for key in ("w", "buffers")}
        stepped = {key: mixed[key] + (draft[key] - inbox.own[key]) for key in mixed}
        correction = draft["correction"] + (mixed["w"] - inbox.own["w"]) / 2
        return {**stepped, "w": stepped["w"] + draft["correction"], "correction": correction}
