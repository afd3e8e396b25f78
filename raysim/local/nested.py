"""Networks of several widths in one: the narrower ones have the first units of the widest, whose parameters they
share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from raysim.local.model import Model
from raysim.local.net import Net
from raysim.local.outputs import LossFunction
from raysim.models.slices import Index


class Inner(NamedTuple):
    """A narrower network."""

    net: Net
    places: Index  # of its parameters and buffers in those of the widest


class Nested:
    """The networks of all widths up to that of a client. Each normalises by its own running statistics.

    net: the client's, which is the widest. inner: the others, the widest first. statistics: the buffers of each,
    (n, b), as long as those of the widest; its own is the first row.
    """

    def __init__(self, net: Net, inner: Sequence[Inner], statistics: Tensor) -> None:
        self._net, self._inner, self._before = net, inner, statistics
        for one, row in zip(inner, statistics[1:], strict=True):
            one.net.load(one.net.model().replace(net.w[one.places.w], buffers=row[one.places.buffers]))

    def __len__(self) -> int:
        return 1 + len(self._inner)

    def gradients(
        self, place: int, x: Tensor, y: Tensor, loss: LossFunction | None = None
    ) -> tuple[Tensor, Sequence[Tensor]]:
        """Returns the loss of a batch in the network at a place, 0-d, and its gradient for each parameter of the
        widest. The network is the widest itself at 0."""
        net = self._net
        if not place:
            return net.gradients(x, y, net.parameters, loss)
        inner, index = self._inner[place - 1]
        inner.w.copy_(net.w[index.w])
        inner.mode(training=True)
        value, pieces = inner.gradients(x, y, inner.parameters, loss)
        whole = net.w.new_zeros(net.w.shape).index_copy_(0, index.w, inner.part(None).joined(pieces))
        net.seen += len(y)
        net.passes += 3 * len(y)
        return value, net.layout.views(whole)

    def statistics(self, trained: Model) -> Tensor:
        """Returns the buffers of each network after a training, (n, b). trained: the widest."""
        after = self._before.clone()
        after[0] = trained.buffers
        for row, one in zip(after[1:], self._inner, strict=True):
            row[one.places.buffers] = one.net.model().buffers
        return after
