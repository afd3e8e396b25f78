"""A model as algorithms see it: one flat vector of parameters and one of buffers."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from raysim.models.layout import Pair


@dataclasses.dataclass(frozen=True)
class Model:
    """The values of a module's trainable parameters and buffers."""

    w: Tensor  # (size,) float32; the shared part, followed by the personal part
    buffers: Tensor  # (b,) float32, such as BatchNorm's running statistics
    cut: int  # where the personal part of `w` starts; len(w) where there is none
    buffers_cut: int  # where that of `buffers` starts; len(buffers) but where `model.norm` is local
    pairs: tuple[Pair, ...] = ()  # the adapters of `model.lora`: where A and B are in `w`

    @property
    def shared(self) -> Tensor:
        """The shared part of `w`, (cut,), as a view."""
        return self.w[: self.cut]

    @property
    def shared_buffers(self) -> Tensor:
        """The buffers that travel, (buffers_cut,), as a view."""
        return self.buffers[: self.buffers_cut]

    @property
    def personal(self) -> Tensor:
        """What stays with a client, (size - cut + b - buffers_cut,): the personal part of `w`, as a view or, if buffers
        stay, too, a copy of both."""
        import torch

        own = self.buffers[self.buffers_cut :]
        return torch.cat((self.w[self.cut :], own)) if len(own) else self.w[self.cut :]

    def replace(
        self,
        w: Tensor | None = None,
        *,
        shared: Tensor | None = None,
        personal: Tensor | None = None,
        buffers: Tensor | None = None,
    ) -> Model:
        """Returns a model with all parameters, one part of them or the buffers replaced.

        buffers: all of them, or those that travel. personal: as the property of that name.
        """
        import torch

        whole = self.w if w is None else w
        every = self.buffers if buffers is None else buffers
        if len(every) < len(self.buffers):
            every = torch.cat((every, self.buffers[self.buffers_cut :]))
        if shared is not None or personal is not None:
            first = whole[: self.cut] if shared is None else shared
            last = whole[self.cut :] if personal is None else personal[: len(whole) - self.cut]
            if personal is not None and len(every) > self.buffers_cut:
                every = torch.cat((every[: self.buffers_cut], personal[len(last) :]))
            whole = torch.cat((first, last))
        return Model(whole, every, self.cut, self.buffers_cut, self.pairs)
