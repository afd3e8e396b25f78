"""Training on one client's samples. This file loads only the settings and the names of losses, which need no torch."""

from raysim.local.gradients import Gradient
from raysim.local.loss import TrainingLoss
from raysim.local.optimizers import Optimizer
from raysim.local.settings import Local

__all__ = ["Gradient", "Local", "Optimizer", "TrainingLoss"]
