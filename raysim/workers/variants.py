"""The models of clients that are narrower than the server's, and how their vectors lie in those of the server."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from raysim.local.net import Net
from raysim.local.samples import Samples
from raysim.models.exits import Exits, require_first_parts
from raysim.models.slices import Slices, require_consistent
from raysim.scenario import Scenario
from raysim.terms import Adapter, ModelKey, ModelSizes, Record
from raysim.workers.sending import Sending

LINKS: tuple[Literal["uplink", "downlink"], ...] = ("uplink", "downlink")
BUFFERS = ("buffers", "statistics")  # entries that are shaped like buffers, in their last dimension


class Variant:
    """The model of a level: its network, its first values, and what of the server's vectors it holds.

    slices: None of the server's own model, of which it holds all.
    """

    def __init__(self, level: ModelKey, net: Net, scenario: Scenario, slices: Slices | None = None) -> None:
        self.level, self.net, self.slices = level, net, slices
        self.start = net.model()
        self.sending, self.receiving = (Sending(net.layout, scenario, link) for link in LINKS)

    def cut(self, record: Record, shift: int = 0) -> Record:
        """Returns a record with the slice of each vector that is shaped like the server's model. shift: its first
        unit."""
        if self.slices is None:
            return record
        index, whole = self.slices.of(shift), (self.slices.whole.size,)
        return {
            key: entry[..., index.buffers] if key in BUFFERS else entry[index.w] if entry.shape == whole else entry
            for key, entry in record.items()
        }

    def widen(self, record: Record, shift: int = 0, onto: Record | None = None) -> Record:
        """Returns a record with zeros around each vector that is shaped like this model, where `cut` leaves numbers
        out. onto: what is there in the place of zeros."""
        if self.slices is None:
            return record
        index, whole = self.slices.of(shift), self.slices.whole
        buffers = (index.buffers, sum(entry.size for entry in whole.buffers))
        widened = {}
        for key, entry in record.items():
            places, size = buffers if key in BUFFERS else (index.w, whole.size)
            shaped = key in BUFFERS or (entry.ndim == 1 and len(entry) == len(index.w))
            wide = onto[key].clone() if onto else entry.new_zeros((*entry.shape[:-1], size)) if shaped else entry
            widened[key] = wide.index_copy_(-1, places, entry) if shaped else entry
        return widened

    @cached_property
    def sizes(self) -> ModelSizes:
        """The sizes of the model."""
        layout, pairs = self.net.layout, self.start.pairs
        adapters = (Adapter(one.rank, one.numbers, one.base.size if one.base else None) for one in pairs)
        shared = sum(entry.offset < layout.cut for entry in layout.entries)
        return ModelSizes(tuple(one.size for one in layout.entries), shared, layout.buffers_cut, tuple(adapters))

    def forward_flops(self, x: Callable[[int], Any]) -> float:
        """Returns the FLOPs of one sample's forward pass. A backward pass takes twice as many: for inputs and for
        parameters. x: returns so many inputs."""
        try:
            return self._flops(x(1))
        except Exception:  # such as that of a norm that always takes statistics of the batch
            return self._flops(x(2)) / 2

    def _flops(self, x: Any) -> float:
        with FlopCounter() as counter, self.net.evaluating(self.start) as module:
            module(x)
        return float(counter.total)

    def memory_bytes(self, vectors: int, samples: Samples, batch: int) -> int:
        """Returns the bytes that training takes: parameters, gradients and the optimiser's vectors, buffers, and what a
        mini-batch keeps for its backward pass.

        vectors: how many the optimiser keeps. samples: some, of which a pass is measured. batch: the size of a batch.
        """
        kept: dict[int, int] = {}  # by storage
        own = self.net.w.untyped_storage().data_ptr()

        def keep(tensor: Tensor) -> Tensor:
            storage = tensor.untyped_storage()
            if storage.data_ptr() != own:
                kept[storage.data_ptr()] = storage.nbytes()
            return tensor

        x, y = samples.all
        with self.net.training(self.start), torch.autograd.graph.saved_tensors_hooks(keep, lambda one: one):
            self.net.loss(self.net.module(x), y)
        constant = self.net.w.element_size() * (len(self.net.w) * (2 + vectors) + len(self.start.buffers))
        return constant + round(sum(kept.values()) * batch / len(y))


def require_slice(level: float, make: Callable[[float | None], Net], x: Any, shift: int) -> None:
    """Raises BadValue, which names the layer, where the model of a level is no slice of the server's.

    make: makes a network of a level, or the server's. x: some inputs. shift: the first unit of a slice that wraps
    around, if any does.
    """
    whole, part = ((net.module, net.layout) for net in (make(None), make(level)))
    slices = Slices(*whole, *part)
    if isinstance(whole[0], Exits):
        require_first_parts(whole, part, slices, x)
    else:
        require_consistent(whole, part, slices, x, shift)


class FlopCounter(TorchDispatchMode):
    """Counts, within the block, what torch's `FlopCounterMode` counts: matrix products, convolutions and attention.

    That one loads torch's compiler when it is used first, which takes seconds.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.total: float = 0.0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else torch would load its compiler, to keep it from compiling this class

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from torch.utils.flop_counter import flop_registry

        kwargs = kwargs or {}
        packet = func._overloadpacket
        if packet not in flop_registry and func is not torch.ops.prim.device.default:
            with self:
                parts = func.decompose(*args, **kwargs)  # an operation that is made of others
            if parts is not NotImplemented:
                return parts
        result = func(*args, **kwargs)
        if packet in flop_registry:
            self.total += flop_registry[packet](*args, **kwargs, out_val=result)
        return result
