"""All optimisers, each in a file of its own. To add one, import it here and put it into `OPTIMIZERS`."""

from raysim.local.optimizers.adagrad import Adagrad
from raysim.local.optimizers.adam import Adam
from raysim.local.optimizers.adamw import AdamW
from raysim.local.optimizers.optimizer import Optimizer
from raysim.local.optimizers.rmsprop import RMSprop
from raysim.local.optimizers.sgd import SGD

OPTIMIZERS: tuple[type[Optimizer], ...] = (SGD, Adam, AdamW, Adagrad, RMSprop)

__all__ = ["OPTIMIZERS", "SGD", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop"]
