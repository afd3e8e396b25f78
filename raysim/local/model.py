"""A model as algorithms see it: one flat vector of parameters and one of buffers."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclasses.dataclass(frozen=True)
class Model:
    """The values of a module's trainable parameters and buffers."""

    w: Tensor  # (size,) float32; the shared part, followed by the personal part
    buffers: Tensor  # (b,) float32, such as BatchNorm's running statistics
    cut: int  # where the personal part of `w` starts; len(w) where there is none

    @property
    def shared(self) -> Tensor:
        """The shared part of `w`, (cut,), as a view."""
        return self.w[: self.cut]

    @property
    def personal(self) -> Tensor:
        """The personal part of `w`, (size - cut,), as a view."""
        return self.w[self.cut :]

    def replace(
        self,
        w: Tensor | None = None,
        *,
        shared: Tensor | None = None,
        personal: Tensor | None = None,
        buffers: Tensor | None = None,
    ) -> Model:
        """Returns a model with all parameters, one part of them or the buffers replaced."""
        import torch

        whole = self.w if w is None else w
        if shared is not None or personal is not None:
            first = whole[: self.cut] if shared is None else shared
            last = whole[self.cut :] if personal is None else personal
            whole = torch.cat((first, last))
        return Model(whole, self.buffers if buffers is None else buffers, self.cut)
