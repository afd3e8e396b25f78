"""Where the factors of adapters are in a flat vector, as matrices."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from raysim.models.layout import Entry, Layout, view_of

_NAMES = ("lora_{}.default.weight", "lora_embedding_{}.default")


@dataclass(frozen=True)
class Pair:
    """The adapter of a layer, whose weight W (outputs, inputs) it makes W + scale B A.

    A is (rank, inputs), B is (outputs, rank). base: where W is among the buffers, if adapters can be merged into it.
    turned: whether it is there as (inputs, outputs), as that of an embedding is.
    """

    a: Entry
    b: Entry
    scale: float
    base: Entry | None
    turned: bool

    @property
    def rank(self) -> int:
        return self.a.shape[0]

    @property
    def numbers(self) -> int:
        """How many numbers A and B have for each rank: inputs and outputs together."""
        return (self.a.size + self.b.size) // self.rank

    def factors(self, w: Tensor) -> tuple[Tensor, Tensor]:
        """Returns A and B of a flat vector, which are views of it where its memory format allows that."""
        return self._view(w, self.a).flatten(1), self._view(w, self.b).flatten(1)

    def put(self, w: Tensor, a: Tensor, b: Tensor) -> None:
        """Puts A and B into a flat vector, in place. Of lower ranks, the other rows and columns become zero."""
        for entry, factor, along in ((self.a, a, 0), (self.b, b, 1)):
            whole = factor.new_zeros(entry.shape[:2] if along else (self.rank, entry.size // self.rank))
            whole.narrow(along, 0, factor.shape[along]).copy_(factor)
            self._view(w, entry).copy_(whole.view(entry.shape))

    def merge(self, buffers: Tensor, change: Tensor) -> None:
        """Adds scale times a change (outputs, inputs) to W in a vector of buffers, in place."""
        assert self.base is not None
        weight = buffers[self.base.offset : self.base.offset + self.base.size]
        weight.add_((change.T if self.turned else change).reshape(-1), alpha=self.scale)

    @staticmethod
    def _view(w: Tensor, entry: Entry) -> Tensor:
        return view_of(w[entry.offset : entry.offset + entry.size], entry)


def pairs_of(module: nn.Module, layout: Layout) -> tuple[Pair, ...]:
    """Returns the adapters whose A and B are both in the layout. Convolutions in groups have no such product."""
    entries = {entry.name: entry for entry in layout.entries}
    buffers = {entry.name: entry for entry in layout.buffers}
    found = []
    for name, layer in module.named_modules():
        a, b = (next((entries[n] for n in _of(name, factor) if n in entries), None) for factor in "AB")
        base: Any = getattr(layer, "base_layer", None)
        if a is None or b is None or getattr(base, "groups", 1) > 1:
            continue
        turned = isinstance(base, nn.Embedding) or getattr(layer, "fan_in_fan_out", False)
        scale = float(layer.scaling["default"])
        found.append(Pair(a, b, scale, buffers.get(f"{name}.base_layer.weight"), turned))
    return tuple(found)


def _of(layer: str, factor: str) -> list[str]:
    return [f"{layer}.{name.format(factor)}" for name in _NAMES]
