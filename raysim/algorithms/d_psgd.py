"""Decentralised SGD (D-PSGD, also called CDSGD): mixing and a gradient step at once.

Lian, Zhang, Zhang, Hsieh, Zhang, Liu, Can decentralized algorithms outperform centralized algorithms?, NeurIPS 2017,
Algorithm 1. CDSGD of Jiang, Balu, Hegde, Sarkar, Collaborative deep learning in fixed topology networks, NeurIPS 2017,
is the same recursion.

Differences from the paper: none. The gradient is that of one mini-batch at the peer's own model before mixing.
"""

from typing import Literal

from raysim.algorithms.peer import Inbox, Peer, beyond_one_step
from raysim.algorithms.signatures import Problems, Record, Setting, Task


class DPSGD(Peer):
    """A weighted mean with the neighbours' models, plus a gradient step taken at the own model (Lian et al. 2017)."""

    name: Literal["d_psgd", "cdsgd"] = "d_psgd"

    def problems(self, scenario: Setting) -> Problems:
        return beyond_one_step(scenario)

    def local(self, task: Task, state: Record) -> tuple[Record, Record]:
        trained = task.train(self.personal(task, state))
        return trained.send(w=trained.w), {"w": state["w"], "buffers": state["buffers"]}

    def mix(self, task: Task, draft: Record, inbox: Inbox) -> Record:
        return {key: inbox.mixed(key).add_(draft[key] - inbox.own[key]) for key in ("w", "buffers")}
