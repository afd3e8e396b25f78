"""Asynchronous decentralised parallel SGD (AD-PSGD): peers average with one random neighbour at a time.

Lian, Zhang, Zhang, Liu, Asynchronous decentralized parallel stochastic gradient descent, ICML 2018, Algorithm 1: a peer
takes a gradient at its model, then replaces its own model and that of a random neighbour by their mean, at once on both
sides, and then takes the step, x_i = (x_i + x_j) / 2 - lr g_i(x_i as it was read). While a gradient is computed, others
may change the model.

Differences from the paper: a training may have several local steps, of which the sum is added. The graph need not be
bipartite, because exchanges that would block each other in a circle wait for their turn instead.
"""

from typing import ClassVar

from raysim.algorithms.peer import Inbox, Peer
from raysim.algorithms.signatures import Record, Task


class ADPSGD(Peer):
    """Two peers at a time take the mean of their models, while others compute steps (Lian et al. 2018)."""

    name: str = "ad_psgd"
    pairs: ClassVar[bool] = True
    mixes: ClassVar = "mean"

    def local(self, task: Task, state: Record) -> tuple[Record, Record]:
        trained = task.train(self.personal(task, state))
        return {key: entry - state[key] for key, entry in trained.send(w=trained.w).items()}, state

    def mix(self, task: Task, draft: Record, inbox: Inbox) -> Record:
        mixed = {key: inbox.mixed(key) for key in ("w", "buffers")}
        return {key: entry + draft[key] if draft else entry for key, entry in mixed.items()}
