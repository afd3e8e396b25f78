"""Push-sum averaging: peers of a directed graph agree on the mean of models that each has trained on its own.

Kempe, Dobra, Gehrke, Gossip-based computation of aggregate information, FOCS 2003, Protocol Push-Vector, whose sums and
weights are those of `sgp`.

Differences from the paper: it says nothing of training. Here each peer trains once, as `local` says and before the
clock starts, from the model that all start from, and from then on peers only average. A peer sends to all receivers,
with the topology's shares, instead of half to one at random.
"""

from raysim.algorithms.sgp import SGP, weighed
from raysim.algorithms.signatures import Local, Record, Task


class PushSum(SGP):
    """Peers train once, and then only average their models, also on directed graphs (Kempe et al. 2003)."""

    name: str = "push_sum"

    def samples_seen(self, local: Local, samples: int) -> int:
        return 0  # in `local`, nobody trains

    def init(self, task: Task) -> Record:
        trained = task.train(task.received)
        return weighed({"w": trained.w, "buffers": trained.model.shared_buffers})

    def local(self, task: Task, state: Record) -> tuple[Record, Record]:
        return {}, state
