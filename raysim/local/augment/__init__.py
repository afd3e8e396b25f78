"""Ways to augment training samples. To add one, put it into `AUGMENTATIONS`."""

from raysim.local.augment.augmentation import Augmentation
from raysim.local.augment.function import AugmentFunction
from raysim.local.augment.images import ColorJitter, Crop, Cutout, Flip, MixUp, RandAugment

AUGMENTATIONS: tuple[type[Augmentation], ...] = (
    *(Crop, Flip, ColorJitter, Cutout, RandAugment, MixUp),
    AugmentFunction,
)

__all__ = ["AUGMENTATIONS", "AugmentFunction", "Augmentation"]
