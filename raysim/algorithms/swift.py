"""SWIFT: peers that never wait send their models before they train, and average with the newest ones that have come.

Bornstein, Rabbani, Wang, Bedi, Huang, SWIFT: Rapid decentralized federated learning via wait-free model communication,
ICLR 2023, Algorithm 1: a peer sends its model x_i, takes a gradient at it, replaces it by the mean of its own model and
the newest ones of its neighbours, and takes the step, x_i = sum_j W_ij x_j - lr g_i(x_i as it was sent). `every` stands
for the paper's communication set: with 1, that is C_0, and with 2, C_1.

Differences from the paper: weights are those of the topology, not those of its Algorithm 2. A neighbour from whom
nothing has come yet leaves its weight to the peer itself, where the authors' code takes the first model for it. A
training may have several local steps. BatchNorm's buffers are averaged like parameters, which the authors' are not.
"""

from typing import ClassVar

from raysim.algorithms.peer import Inbox, Peer
from raysim.algorithms.signatures import Record, Task
from raysim.parts.part import Count


class SWIFT(Peer):
    """Peers send models before they train, and average the newest ones after it (Bornstein et al. 2023)."""

    name: str = "swift"
    sends_first: ClassVar[bool] = True
    every: Count = 1
    """Number of trainings from one average to the next. A model is sent before each training all the same."""

    def local(self, task: Task, state: Record) -> tuple[Record, Record]:
        trained = task.train(self.personal(task, state))
        return trained.send(w=trained.w), state

    def mix(self, task: Task, draft: Record, inbox: Inbox) -> Record:
        if (task.dispatch + 1) % self.every:
            return draft
        return {key: inbox.mixed(key).add_(draft[key] - inbox.own[key]) for key in ("w", "buffers")}
