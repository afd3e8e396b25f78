"""DFedSAM: peers take sharpness-aware steps, and mix their models with those of their neighbours.

Shi, Shen, Wei, Sun, Yuan, Wang, Tao, Improving the model consistency of decentralized federated learning, ICML 2023,
Algorithm 1 (DFedSAM, with one gossip step a round). With radius 0 it is DFedAvgM without momentum.
"""

from typing import Any

from raysim.algorithms import Inbox, Peer, Record
from raysim.parts.part import NonNegative


class DFedSAM(Peer):
    """Local steps along the gradient a little uphill, then a mean with neighbours' models (Shi et al. 2023)."""

    name: str = "dfedsam:DFedSAM"
    rho: NonNegative = 0.01
    """Radius of the sharpness-aware steps (rho): each gradient is taken at w + rho g / |g|. 0: at w itself."""

    def samples_seen(self, local: Any, samples: int) -> int:  # a sharpness-aware step takes two gradients
        taken: int = local.model_copy(update={"sam": self.rho}).total_samples(samples)
        return taken

    def local(self, task: Any, state: Record) -> tuple[Record, Record]:
        trained = task.train(self.personal(task, state), sam=self.rho)
        return {}, trained.send(w=trained.w)

    def mix(self, task: Any, draft: Record, inbox: Inbox) -> Record:
        return {"w": inbox.mixed("w"), "buffers": inbox.mixed("buffers")}
