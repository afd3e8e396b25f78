"""Push-Pull: gradient tracking on directed graphs, which pulls models and pushes gradients.

Pu, Shi, Xu, Nedic, Push-pull gradient methods for distributed optimization in networks, IEEE Transactions on Automatic
Control 66, 2021, Algorithm 1: x_i = sum_j R_ij (x_j - lr y_j), where rows of R sum to 1, and
y_i = sum_j A_ij y_j + g_i(new x_i) - g_i(old x_i), where columns of A sum to 1. Nothing is divided. AB of Xin, Khan, A
linear algorithm for optimization over directed graphs with geometric convergence, IEEE Control Systems Letters 2, 2018,
is the same but for its step, which peers take after mixing. With symmetric weights, it is `dsgt`.

Differences from the paper: gradients are those of mini-batches, drawn anew for each, as in `dsgt`.
"""

from typing import ClassVar

from raysim.algorithms.dsgt import DSGT
from raysim.algorithms.peer import Inbox, in_rounds_only
from raysim.algorithms.signatures import Problems, Setting, Tensor


class PushPull(DSGT):
    """Peers of a directed graph pull models, and push estimates of all peers' mean gradient (Pu et al. 2021)."""

    name: str = "push_pull"
    mixes: ClassVar = "both"

    def problems(self, scenario: Setting) -> Problems:
        yield from super().problems(scenario)
        why = "which pulls the newest models but pushes each gradient once"
        yield from in_rounds_only(scenario, why, "push_diging")

    def tracked(self, inbox: Inbox) -> Tensor:
        return inbox.pushed("tracker")
