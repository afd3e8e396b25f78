"""A model as algorithms see it, one flat vector of parameters and one of buffers, and the part of a module that is
trained."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from raysim.data.dataset import IGNORED
from raysim.data.meaning import NamedArrays
from raysim.local.outputs import LossFunction
from raysim.models.layers import BoundedLinear
from raysim.models.layout import Layout, Pair, view_of

# Attention and LSTMs of a CPU go through the samples one by one, which is right, only slower.
warnings.filterwarnings("ignore", message="There is a performance drop because we have not yet implemented")


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


class Trainable(NamedTuple):
    """The part of a module's parameters that is trained."""

    w: Tensor  # (n,), a view of the module's flat vector
    views: list[Tensor]  # pieces of w, each in the shape of its parameter
    parameters: list[nn.Parameter]
    span: slice  # where w lies in the flat vector of all parameters
    which: slice  # where the parameters lie in the list of all parameters
    bounded: list[BoundedLinear]  # layers with a bound on weights that are trained
    layout: Layout  # of all parameters

    @classmethod
    def of(cls, module: nn.Module, w: Tensor, layout: Layout, span: slice, which: slice) -> Trainable:
        """Returns a part of a module whose parameters are views of w. span, which: as the fields of these names."""
        parameters = layout.select(module)[which]
        among = {id(parameter) for parameter in parameters}
        bounded = [m for m in module.modules() if isinstance(m, BoundedLinear) and id(m.weight) in among]
        return cls(w[span], layout.views(w)[which], parameters, span, which, bounded, layout)

    def project(self) -> None:
        """Moves bounded weights back within their bounds, in place. To be called after each step."""
        for layer in self.bounded:
            layer.project()

    def flat(self) -> tuple[Tensor, list[Tensor]]:
        """Returns zeros in the shape of `w`, and their views in the shapes of the parameters."""
        whole = torch.zeros(self.layout.size, device=self.w.device)
        return whole[self.span], self.layout.views(whole)[self.which]

    def pieces(self, vector: Tensor) -> list[Tensor]:
        """Returns views of a vector (n,) like `w` in the shapes of the parameters."""
        first, entries = self.span.start or 0, self.layout.entries[self.which]
        return [view_of(vector[e.offset - first : e.offset - first + e.size], e) for e in entries]

    def joined(self, gradients: Sequence[Tensor]) -> Tensor:
        """Returns the gradients of the parameters as one new vector in the shape of `w`."""
        vector, views = self.flat()
        torch._foreach_copy_(views, list(gradients))
        return vector


def gradient_of_each(
    module: nn.Module, parameters: list[nn.Parameter], loss: LossFunction, x: Tensor, y: Tensor
) -> tuple[Tensor, list[Tensor]]:
    """Returns the loss of each sample of a batch, (n,), and its gradient for each parameter, (n, ...).

    A sample's loss is that of a batch which holds nothing else. Samples none of whose labels count are left out.
    """
    if y.ndim > 1 and not y.is_floating_point() and not bool((counts := (y != IGNORED).flatten(1).any(1)).all()):
        x, y = x[counts], y[counts]
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    values = {names[id(parameter)]: parameter.detach() for parameter in parameters}
    named = isinstance(x, NamedArrays)

    def of_one(values: dict[str, Tensor], x: Any, y: Tensor) -> Tensor:
        batch = NamedArrays({name: one[None] for name, one in x.items()}) if named else x[None]
        output = functional_call(module, values, (batch,))
        return loss(output.float(), y[None])

    each = vmap(grad_and_value(of_one), in_dims=(None, 0, 0), randomness="different")
    with torch.no_grad():  # nothing needs gradients of gradients
        gradients, losses = each(values, dict(x.items()) if isinstance(x, NamedArrays) else x, y)
    return losses, [gradients[name] for name in values]
