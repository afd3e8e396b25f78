"""Decentralised federated learning with sharpness-aware steps (DFedSAM).

Shi, Shen, Wei, Sun, Yuan, Wang, Tao, Improving the model consistency of decentralized federated learning, ICML 2023,
Algorithm 1.

Differences from the paper: one gossip step a round; the paper's DFedSAM-MGS has several.
"""

from raysim.algorithms.decfedavg import DecFedAvg
from raysim.algorithms.signatures import Local, Record, Task
from raysim.local.gradients import SAM, Gradient
from raysim.parts.part import NonNegative


class DFedSAM(DecFedAvg):
    """Local steps along the gradient a little uphill, then a mean with neighbours' models (Shi et al. 2023)."""

    name: str = "dfedsam"
    rho: NonNegative = 0.01
    """Radius of the sharpness-aware steps (rho): each gradient is taken at w + rho g / |g|. 0: at w itself."""

    def samples_seen(self, local: Local, samples: int) -> int:
        return local.model_copy(update={"gradients": self._gradients(local)}).total_samples(samples)

    def _gradients(self, local: Local) -> tuple[Gradient, ...]:
        return (*local.gradients, SAM(radius=self.rho)) if self.rho else local.gradients

    def local(self, task: Task, state: Record) -> tuple[Record, Record]:
        trained = task.train(self.personal(task, state), gradients=self._gradients(task.local))
        return {}, trained.send(w=trained.w)
