"""The flat vector: a module's trainable parameters in one float32 vector w, shared ones first, personal ones last.

Buffers are in a second vector, and those that stay with a client are last there, too.

Both parts start on 64-byte boundaries, because BLAS results can depend on alignment: if there is a personal part, the
shared one before it is padded with zeros. Parameters with requires_grad=False are frozen and not in the vector.

Four-dimensional parameters are convolutions' weights (O, I, H, W). Unless the model says otherwise, they are stored as
O, H, W, I, torch's channels-last memory format, and viewed as O, I, H, W, because channels-last convolutions are 1.3 to
1.6 times faster on CPUs.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from raysim.models.layers import required_norms
from raysim.models.names import is_under, names_of, nearest_parameter
from raysim.models.part import Norm
from raysim.parts.errors import BadValue

ALIGNMENT = 16  # floats in 64 bytes
_FACTORS = ("lora_{}.default.weight", "lora_embedding_{}.default")  # of adapters, by peft


@dataclass(frozen=True)
class Entry:
    """A tensor's place in a flat vector: elements offset to offset + size. channels_last: how it is stored."""

    name: str
    shape: tuple[int, ...]
    offset: int
    channels_last: bool = False

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class LayerBlock(NamedTuple):
    """The parameters of a sub-module: where they lie in w, one after another, and their shapes."""

    span: slice
    shapes: tuple[tuple[int, ...], ...]


class Layout:
    """Names, shapes and places of a module's trainable parameters in w (size,), and of its buffers in another vector.

    size: number of elements of w, including padding. parameters: number of elements without padding. cut: where the
    personal part starts, or size if there is none. entries: the parameters in the order of w; one with several
    names (tied weights) has the first. buffers: the persistent floating-point buffers, such as BatchNorm's running mean
    and variance. buffers_cut: where those that stay with a client start in their vector. Integer buffers, such as
    num_batches_tracked, have no place, and start anew in each training, as do sparse ones, and those that are not
    finite at first, such as attention masks: they are constants, and no mean of them exists.

    personal: chooses parameters by any of their names, as `is_under` says.
    channels_last: whether convolutions' weights are stored channels-last, as above, or like all others.
    norm: as in `ModelPart`. Parameters and buffers of local norms are personal; buffers of frozen ones have no place.
    Raises ValueError for what chooses no trainable parameter, and where norms are not averaged and there are none. A
    layout holds no tensor, and can be pickled.
    """

    def __init__(
        self, module: nn.Module, personal: tuple[str, ...] = (), *, channels_last: bool = True, norm: Norm = "average"
    ) -> None:
        norms = tuple(required_norms(module, norm))
        shapes = {name: tuple(p.shape) for name, p in module.named_parameters() if p.requires_grad}
        names = {first: every for first, every in names_of(module).items() if first in shapes}
        _check(personal, [name for every in names.values() for name in every])
        stays = (*personal, *norms) if norm == "local" else personal
        own = {n: shape for n, shape in shapes.items() if any(is_under(name, stays) for name in names[n])}
        shared, end = _place({name: shape for name, shape in shapes.items() if name not in own}, 0, channels_last)
        self._padding = -end % ALIGNMENT if own else 0
        self.cut = end + self._padding
        personals, self.size = _place(own, self.cut, channels_last)
        self._shared = len(shared)
        self.entries = (*shared, *personals)
        self.parameters = self.size - self._padding
        kept = module.state_dict().keys()  # buffers that are not persistent are constants
        floats = {n: tuple(b.shape) for n, b in module.named_buffers() if n in kept and _is_averaged(b)}
        of_norms = {name: floats.pop(name) for name in list(floats) if is_under(name, norms)}
        shared, self.buffers_cut = _place(floats, 0)
        personals, self._buffers_size = _place(of_norms if norm == "local" else {}, self.buffers_cut)
        self.buffers = (*shared, *personals)

    def views(self, w: Tensor) -> list[Tensor]:
        """Returns a view of w for each entry, in its shape. w may require gradients."""
        sizes = [entry.size for entry in self.entries]
        sizes.insert(self._shared, self._padding)
        # The gradient of one split is one concatenation; the gradient of n slices would be n additions of size d.
        pieces = list(w.split_with_sizes(sizes))
        del pieces[self._shared]
        return [view_of(piece, entry) for piece, entry in zip(pieces, self.entries, strict=True)]

    def select(self, module: nn.Module) -> list[nn.Parameter]:
        """Returns the module's parameters in the order of `entries`."""
        parameters = dict(module.named_parameters())
        return [parameters[entry.name] for entry in self.entries]

    def block(self, name: str) -> LayerBlock:
        """Returns the place of all parameters of a sub-module."""
        inside = [entry for entry in self.entries if f"{entry.name}.".startswith(f"{name}.")]
        span = slice(inside[0].offset, inside[-1].offset + inside[-1].size) if inside else slice(0)
        return LayerBlock(span, tuple(entry.shape for entry in inside))

    @torch.no_grad()
    def flatten(self, module: nn.Module) -> Tensor:
        """Returns the module's parameters as a new vector (size,) on their device; padding is zero."""
        parameters = self.select(module)
        w = torch.zeros(self.size, device=parameters[0].device)
        for view, parameter in zip(self.views(w), parameters, strict=True):
            view.copy_(parameter)
        return w

    def bind(self, module: nn.Module, w: Tensor) -> None:
        """Makes the module's parameters views of w, so that the module follows when w is changed in place."""
        for view, parameter in zip(self.views(w), self.select(module), strict=True):
            parameter.data = view

    @torch.no_grad()
    def flatten_buffers(self, module: nn.Module) -> Tensor:
        """Returns the module's floating-point buffers as a new float32 vector, empty if it has none."""
        vector = torch.empty(self._buffers_size, device=next(module.parameters()).device)
        for piece, buffer in self._pair(vector, module):
            piece.copy_(buffer)
        return vector

    @torch.no_grad()
    def load_buffers(self, module: nn.Module, vector: Tensor) -> None:
        """Copies a vector of buffers into the module's buffers."""
        for piece, buffer in self._pair(vector, module):
            buffer.copy_(piece)

    def _pair(self, vector: Tensor, module: nn.Module) -> list[tuple[Tensor, Tensor]]:
        """Pairs each buffer's view of the vector with the module's buffer."""
        found = dict(module.named_buffers())
        pieces = vector.split_with_sizes([entry.size for entry in self.buffers])
        return [(piece.view(e.shape), found[e.name]) for e, piece in zip(self.buffers, pieces, strict=True)]


def _is_averaged(buffer: Tensor) -> bool:
    dense = buffer.layout == torch.strided
    return dense and buffer.is_floating_point() and bool(buffer.isfinite().all())


def is_expanded(tensor: Tensor) -> bool:
    """Whether several elements of a tensor are one number in memory, so that it cannot be changed in place."""
    dense = tensor.layout == torch.strided
    return dense and any(step == 0 and n > 1 for n, step in zip(tensor.shape, tensor.stride(), strict=True))


def _place(
    shapes: dict[str, tuple[int, ...]], offset: int, channels_last: bool = False
) -> tuple[tuple[Entry, ...], int]:
    """Places the tensors one after another from offset on. Returns their entries, and where they end."""
    entries = []
    for name, shape in shapes.items():
        entries.append(Entry(name, shape, offset, channels_last and len(shape) == 4))
        offset += entries[-1].size
    return tuple(entries), offset


def view_of(piece: Tensor, entry: Entry) -> Tensor:
    """Returns a view of a piece of w in the parameter's shape."""
    if not entry.channels_last:
        return piece.view(entry.shape)
    o, i, h, w = entry.shape
    return piece.view(o, h, w, i).permute(0, 3, 1, 2)


def _check(personal: tuple[str, ...], names: list[str]) -> None:
    for one in personal:
        if not any(is_under(name, (one,)) for name in names):
            text = f"{one!r} must be a trainable parameter's name, its first components, or a pattern of it"
            raise BadValue(f"{text}; nearest are {nearest_parameter(one, names)}", "personal")


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
        names = ([f"{name}.{one.format(factor)}" for one in _FACTORS] for factor in "AB")
        a, b = (next((entries[n] for n in either if n in entries), None) for either in names)
        base: Any = getattr(layer, "base_layer", None)
        if a is None or b is None or getattr(base, "groups", 1) > 1:
            continue
        turned = isinstance(base, nn.Embedding) or getattr(layer, "fan_in_fan_out", False)
        scale = float(layer.scaling["default"])
        found.append(Pair(a, b, scale, buffers.get(f"{name}.base_layer.weight"), turned))
    return tuple(found)
