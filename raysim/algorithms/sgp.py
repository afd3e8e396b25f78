"""Stochastic gradient push (SGP), and overlap SGP: SGD on directed graphs, by push-sum.

Assran, Loizou, Ballas, Rabbat, Stochastic gradient push for distributed deep learning, ICML 2019, Algorithm 1. A peer
keeps a numerator x_i and a weight w_i, 1 at first, and takes gradients at its model z_i = x_i / w_i:
x_i = sum_j A_ij (x_j - lr g_j(z_j)) and w_i = sum_j A_ij w_j, where columns of A sum to 1. With `overlap`, it is the
paper's Algorithm 2: what peers send in a round is added that many rounds later, and what they keep at once.

Differences from the paper: a training may have several local steps. They start from z_i, and what they change is added
to x_i. In its Algorithm 2, tau bounds delays that vary; here all messages of a round are added together. The weight
travels as one number more, and a weight of 1, as all have where rows of A sum to 1, too, divides nothing. As in the
authors' code, no weight has a lower bound, which would add to the sums over all peers. A peer without weight, which has
no model, takes the first one.
"""

import math
from typing import Annotated, ClassVar

from pydantic import Field

from raysim.algorithms.peer import Inbox, Peer
from raysim.algorithms.signatures import Model, Problem, Problems, Record, Setting, Task
from raysim.parts.part import Unit


class SGP(Peer):
    """Local training, then push-sum: peers of a directed graph send shares of their models (Assran et al. 2019)."""

    name: str = "sgp"
    mixes: ClassVar = "push"
    consumes: ClassVar[bool] = True
    overlap: Annotated[int, Field(ge=0), Unit("rounds")] = 0
    """How many rounds later messages are added, so that a round need not wait for its own messages (tau)."""

    @property
    def lag(self) -> int:
        return self.overlap

    def problems(self, scenario: Setting) -> Problems:
        if self.overlap and not scenario.world.synchronous:
            text = f"must be 0 for peers that do not wait, who add a message when it is there, got {self.overlap}"
            yield Problem("algorithm.overlap", f"{text}; leave it out")

    def init(self, task: Task) -> Record:
        return weighed(super().init(task))

    def local(self, task: Task, state: Record) -> tuple[Record, Record]:
        model = self.personal(task, state)
        trained = task.train(model)
        sent = trained.send(w=trained.w)
        if state["weight"] != 1:
            sent = {key: state[key] + (sent[key] - getattr(model, key)) for key in ("w", "buffers")}
        return {}, {**sent, "weight": state["weight"]}

    def mix(self, task: Task, draft: Record, inbox: Inbox) -> Record:
        return pushed(inbox)

    def personal(self, task: Task, state: Record) -> Model:
        return ratio(task, state)


def weighed(state: Record) -> Record:
    """Returns a peer's first state with its weight, 0-d, which is 1."""
    return {**state, "weight": state["w"].new_ones(())}


def pushed(inbox: Inbox) -> Record:
    """Returns the numerators, `w` and `buffers`, and the weight of a peer after a mix."""
    step, sent = inbox.step, 1 - inbox.kept
    shares = [inbox.kept if step == 1 else 1 - step * sent, *(step * share for share in inbox.shares)]
    of_weight = zip(shares, (inbox.own, *inbox.messages), strict=True)
    # The sum is rounded once, so that weights that are all 1 stay exactly that where shares of a row sum to 1.
    weight = math.fsum(share * float(message["weight"]) for share, message in of_weight)
    return {**{key: inbox.pushed(key) for key in ("w", "buffers")}, "weight": inbox.own["weight"].new_tensor(weight)}


def ratio(task: Task, state: Record) -> Model:
    """Returns a peer's model, x / w; the first model if it has no weight."""
    weight = state["weight"]
    if weight == 0:
        return task.received
    numerators = state if weight == 1 else {key: state[key] / weight for key in ("w", "buffers")}
    return task.received.replace(w=numerators["w"], buffers=numerators["buffers"])
