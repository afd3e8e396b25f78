"""A model as algorithms see it: two flat vectors."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclasses.dataclass(frozen=True)
class Model:
    """Trainable parameters and buffers of a module, as values."""

    w: Tensor  # (size,) float32; the shared part first, then the personal part
    buffers: Tensor  # (b,) float32, such as BatchNorm's running statistics
    cut: int  # where the personal part of `w` starts; len(w) where there is none

    @property
    def shared(self) -> Tensor:
        """(cut,), a view."""
        return self.w[: self.cut]

    @property
    def personal(self) -> Tensor:
        """(size - cut,), a view."""
        return self.w[self.cut :]

    def replace(
        self,
        w: Tensor | None = None,
        *,
        shared: Tensor | None = None,
        personal: Tensor | None = None,
        buffers: Tensor | None = None,
    ) -> Model:
        """A model with other parameters, another part of them, or other buffers."""
        import torch

        whole = self.w if w is None else w
        if shared is not None or personal is not None:
            first = whole[: self.cut] if shared is None else shared
            last = whole[self.cut :] if personal is None else personal
            whole = torch.cat((first, last))
        return Model(whole, self.buffers if buffers is None else buffers, self.cut)
