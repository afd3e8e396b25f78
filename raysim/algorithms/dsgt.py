"""Decentralised stochastic gradient tracking (DSGT).

Pu, Nedic, Distributed stochastic gradient tracking methods, Mathematical Programming 187, 2021, equations (2) and (3),
in the form that adapts first and then combines: x_i = sum_j W_ij (x_j - lr y_j), and
y_i = sum_j W_ij y_j + g_i(new x_i) - g_i(old x_i), where g_i is the gradient of a mini-batch.

Differences from the paper: the mini-batch is drawn anew for each gradient, as there, and has `local.batch_size`
samples.
"""

from typing import ClassVar

from raysim.algorithms.peer import Inbox, Peer, Weights, beyond_one_step
from raysim.algorithms.signatures import Local, Model, Problems, Record, Setting, Task, Tensor


class DSGT(Peer):
    """Peers step along an estimate of all peers' mean gradient, which they mix as well (Pu and Nedic 2021)."""

    mixes: ClassVar[Weights] = "symmetric"

    name: str = "dsgt"

    def samples_seen(self, local: Local, samples: int) -> int:
        return 0  # the gradients are those of mixing, which is measured

    def problems(self, scenario: Setting) -> Problems:
        return beyond_one_step(scenario)

    def init(self, task: Task) -> Record:
        gradient = self._gradient(task, task.received)
        return {**super().init(task), "tracker": gradient, "gradient": gradient}

    def local(self, task: Task, state: Record) -> tuple[Record, Record]:
        stepped = state["w"] - task.local.lr * state["tracker"]
        message = {"w": stepped, "buffers": state["buffers"], "tracker": state["tracker"]}
        return {"gradient": state["gradient"]}, message

    def mix(self, task: Task, draft: Record, inbox: Inbox) -> Record:
        w, buffers = inbox.mixed("w"), inbox.mixed("buffers")
        gradient = self._gradient(task, task.received.replace(w=w, buffers=buffers))
        tracker = self.tracked(inbox) + gradient - draft["gradient"]
        return {"w": w, "buffers": buffers, "tracker": tracker, "gradient": gradient}

    def tracked(self, inbox: Inbox) -> Tensor:
        """Returns what is mixed of the estimates y_j, (d,)."""
        return inbox.mixed("tracker")

    def _gradient(self, task: Task, model: Model) -> Tensor:
        """Returns the gradient of a mini-batch: how far a step of rate 1 goes."""
        return model.w - task.train(model, steps=1, lr=1.0, stream=1).w
