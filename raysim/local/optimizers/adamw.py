"""Adam with decoupled weight decay (Loshchilov, Hutter, Decoupled weight decay regularization, ICLR 2019)."""

from typing import ClassVar

from raysim.local.optimizers.adam import Adam


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters by lr * weight_decay (Loshchilov and Hutter 2019)."""

    decoupled: ClassVar[bool] = True

    name: str = "adamw"
