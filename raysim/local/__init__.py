"""Training on one client's samples. This file loads settings and parts only, which need no torch."""

from raysim.local.augment import Augmentation
from raysim.local.gradients import Gradient
from raysim.local.loss import TrainingLoss
from raysim.local.optimizers import Optimizer
from raysim.local.settings import Local

__all__ = ["Augmentation", "Gradient", "Local", "Optimizer", "TrainingLoss"]
