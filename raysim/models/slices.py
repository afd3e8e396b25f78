"""Slices: which elements of the server's flat vectors a narrower module holds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from raysim.models.layers import NORMS
from raysim.models.layout import Entry, Layout, view_of
from raysim.models.widths import PRODUCTS, all_in_heads, source_of
from raysim.parts.errors import BadValue
from raysim.parts.rng import torch_seed


class Cut(NamedTuple):
    """A dimension of a tensor that is cut: in each of `groups`, `kept` of `units`, each of `inner` elements."""

    dim: int
    units: int
    kept: int
    groups: int = 1  # such as the heads of attention
    inner: int = 1  # such as the pixels of a channel, where images are flattened

    def places(self, shift: int) -> Tensor:
        """Returns the elements that are kept. shift: the first unit, from which on they wrap around."""
        units = (np.arange(self.kept) + shift) % self.units
        first = np.arange(self.groups)[:, None] * self.units + units
        return torch.from_numpy((first[..., None] * self.inner + np.arange(self.inner)).reshape(-1))


class Index(NamedTuple):
    """The places of a narrower model's elements in the vectors of the whole one."""

    w: Tensor  # int64, as long as the narrower model's parameters
    buffers: Tensor


class Slices:
    """The slices of a whole module that a narrower one holds, by their shapes: what differs is cut.

    A dimension of n units that has m in the narrower one keeps m that follow each other, from some unit on, wrapping
    around at the end. All tensors of one slice start at the same unit. Raises BadValue, which names the parameter,
    where the narrower module is no part of the whole one.
    """

    def __init__(self, whole: nn.Module, layout: Layout, part: nn.Module, narrow: Layout) -> None:
        self.whole, self._narrow = layout, narrow
        wide, small = all_in_heads(whole), all_in_heads(part)
        products = {f"{name}.weight" for name, layer in whole.named_modules() if isinstance(layer, PRODUCTS)}
        self.cuts: dict[str, list[Cut]] = {}  # by the name of a parameter or buffer
        outputs: list[int] = []
        for mine, other in _pairs(layout.entries, narrow.entries):
            heads = (wide[mine.name], small[mine.name]) if mine.name in wide and mine.name in small else None
            self.cuts[mine.name] = _cuts(mine, other, outputs if mine.name in products else (), heads)
            outputs.append(mine.shape[0])
        for mine, other in _pairs(layout.buffers, narrow.buffers):
            self.cuts[mine.name] = _cuts(mine, other)
        self.has_heads = bool(wide)
        self.of = lru_cache(maxsize=8)(self._of)  # as a version's clients, and their neighbours, ask for it

    def _of(self, shift: int = 0) -> Index:
        """Returns the slice that starts at a unit."""
        whole, narrow = self.whole, self._narrow
        buffers = sum(entry.size for entry in whole.buffers)
        return Index(
            self._index(whole.entries, narrow.entries, whole.size, narrow.size, shift),
            self._index(whole.buffers, narrow.buffers, buffers, sum(e.size for e in narrow.buffers), shift),
        )

    def _index(self, whole: tuple[Entry, ...], narrow: tuple[Entry, ...], size: int, small: int, shift: int) -> Tensor:
        places, found = torch.arange(size), torch.zeros(small, dtype=torch.int64)
        for mine, other in _pairs(whole, narrow):
            kept = view_of(places[mine.offset : mine.offset + mine.size], mine)
            for cut in self.cuts[mine.name]:
                kept = kept.index_select(cut.dim, cut.places(shift))
            view_of(found[other.offset : other.offset + other.size], other).copy_(kept)
        return found


def _pairs(whole: tuple[Entry, ...], narrow: tuple[Entry, ...]) -> list[tuple[Entry, Entry]]:
    """Pairs the tensors of the narrower module with those of the whole one, in the order of that."""
    others = {entry.name: entry for entry in narrow}
    if strange := sorted(others.keys() - {entry.name for entry in whole}):
        raise BadValue(f"must be a part of the server's at each level, got {strange[0]}, which the server's lacks")
    return [(entry, others[entry.name]) for entry in whole if entry.name in others]


def _cuts(
    mine: Entry, other: Entry, outputs: Sequence[int] = (), heads: tuple[tuple[int, int], tuple[int, int]] | None = None
) -> list[Cut]:
    """Returns how a tensor is cut. outputs: of a weight whose second dimension is that of inputs, the sizes of all
    earlier layers. heads: the dimension of a head, and how many units it has, in both modules."""
    if len(mine.shape) != len(other.shape):
        raise BadValue(f"{mine.name} must have as many dimensions at each level, got {mine.shape} and {other.shape}")
    cuts = []
    for dim, (size, kept) in enumerate(zip(mine.shape, other.shape, strict=True)):
        groups, inner = 1, 1
        if size == kept:
            continue
        if heads is not None and heads[0][0] == dim:
            groups = size // heads[0][1]
            if groups * heads[1][1] != kept:
                text = f"{mine.name} must have as many heads at each level, got {groups} and {kept // heads[1][1]}"
                raise BadValue(f"{text}; cut the units of a head, not their number")
        elif dim == 1:
            inner = source_of(size, outputs) or 1
        if size < kept or kept % inner:
            raise BadValue(f"{mine.name} must be larger in the server's model, got {mine.shape} and {other.shape}")
        cuts.append(Cut(dim, size // groups // inner, kept // groups // inner, groups, inner))
    return cuts


# --- whether a slice is a network of the same kind --------------------------------------------------------------------


@torch.no_grad()
def require_consistent(
    whole: tuple[nn.Module, Layout], part: tuple[nn.Module, Layout], slices: Slices, x: Tensor, shift: int = 0
) -> None:
    """Raises BadValue, which names the layer, unless the narrower module computes what the whole one does where all
    that it lacks is zero. Both modules are changed.

    Layers that normalise over units are left out on both sides, and attention, whose softmax depends on the size of
    heads, is not looked at. x: some inputs. shift: the first unit of the slice.
    """
    if slices.has_heads:
        return
    index = slices.of(shift).w
    draw = torch.Generator().manual_seed(torch_seed(0, "consistent"))
    small = 0.1 * torch.randn(len(index), generator=draw)
    large = torch.zeros(whole[1].size)
    large[index] = small
    seen = []
    for (module, layout), w in ((whole, large), (part, small)):
        layout.bind(module, w.to(x.device))
        seen.append(_outputs(module.eval(), x))
    for (name, mine), (_, other) in zip(*seen, strict=True):
        # What leaves a layer of the whole module is that of the narrower one, in other places, and zeros.
        if not torch.allclose(_square(mine), _square(other), rtol=1e-3, atol=1e-6):
            text = f"{name} of a narrower model does not compute a part of what it does in the server's"
            raise BadValue(f"{text}, as where channels are joined or padded; take another model")


def _outputs(module: nn.Module, x: Tensor) -> list[tuple[str, Tensor]]:
    """Returns what leaves each dense or convolutional layer, and the module."""
    found: list[tuple[str, Tensor]] = []
    hooks = []
    for name, layer in module.named_modules():
        if isinstance(layer, PRODUCTS):
            hooks.append(layer.register_forward_hook(lambda _, __, out, name=name: found.append((name, out))))
        elif isinstance(layer, NORMS) and not isinstance(layer, nn.modules.batchnorm._NormBase):
            hooks.append(layer.register_forward_hook(lambda _, given, __: given[0]))
    try:
        out = module(x)
        return [*found, ("what it returns", out)]
    except Exception as error:  # whatever it is, such as a shape that does not fit
        text = f"must compute at each level as the server's does, got {type(error).__name__}: {error}"
        raise BadValue(f"{text}; take another model, or a custom module with a parameter `width`", "name") from error
    finally:
        for hook in hooks:
            hook.remove()


def _square(out: Tensor) -> Tensor:
    return out.double().square().sum()
