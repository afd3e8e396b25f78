"""Push-DIGing: gradient tracking on directed graphs, by push-sum.

Nedic, Olshevsky, Shi, Achieving geometric convergence for distributed optimization over time-varying graphs, SIAM
Journal on Optimization 27, 2017, Algorithm 2: u_i = sum_j A_ij (u_j - lr y_j), v_i = sum_j A_ij v_j, z_i = u_i / v_i,
and y_i = sum_j A_ij y_j + g_i(new z_i) - g_i(old z_i), where columns of A sum to 1. The sum of all y is that of all
gradients. Where rows sum to 1, too, it is `dsgt`.

Differences from the paper: gradients are those of mini-batches, drawn anew for each, as in `dsgt`.
"""

from typing import ClassVar

from raysim.algorithms.dsgt import DSGT
from raysim.algorithms.peer import Inbox
from raysim.algorithms.sgp import pushed, ratio, weighed
from raysim.algorithms.signatures import Model, Record, Task


class PushDIGing(DSGT):
    """Peers of a directed graph push models and estimates of all peers' mean gradient (Nedic et al. 2017)."""

    name: str = "push_diging"
    mixes: ClassVar = "push"
    consumes: ClassVar[bool] = True

    def init(self, task: Task) -> Record:
        return weighed(super().init(task))

    def local(self, task: Task, state: Record) -> tuple[Record, Record]:
        draft, message = super().local(task, state)
        return draft, {**message, "weight": state["weight"]}

    def mix(self, task: Task, draft: Record, inbox: Inbox) -> Record:
        state = pushed(inbox)
        gradient = self._gradient(task, ratio(task, state))
        tracker = inbox.pushed("tracker") + gradient - draft["gradient"]
        return {**state, "tracker": tracker, "gradient": gradient}

    def personal(self, task: Task, state: Record) -> Model:
        return ratio(task, state)
