"""CUDA graphs: the kernels of a local step, recorded once and then started together, with the same bits.

On a small network, starting a step's kernels one by one takes longer than running them. A recorded step reads and
writes the same memory each time: the flat vector, the optimiser's state, and copies of what differs between steps.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from raysim.local.batch_gradient import gradient_of
from raysim.local.net import Net
from raysim.local.settings import Local
from raysim.local.steps import Steps
from raysim.parts.errors import BadInput

T = TypeVar("T")
DEVICE = "cuda"  # whose steps can be captured; tests let a CPU stand in for it
BEFORE = 3  # calls whose kernels are started one by one, in which libraries set themselves up
KEPT = 8  # of recipes, and of recordings of each function: ragged batches have their own, as have settings that change
FIXED = ("optimizer", "weight_decay", "groups", "gradients", "precision")  # keys of `local` on which kernels depend


def on_gpu(work: Callable[[], Any]) -> tuple[Callable[[], None], Any]:
    """Records the kernels that a function starts on the GPU, and runs none. Dropout draws what it draws otherwise.

    Returns what runs them, and the function's result, whose memory they write to. Raises RuntimeError for what a graph
    cannot do, such as waiting for a number of the GPU.
    """
    graph, drawn = torch.cuda.CUDAGraph(), _drawn()
    with torch.cuda.graph(graph):
        made = work()
    if _drawn() != drawn:
        raise RuntimeError("it draws random numbers outside of the GPU, which would be the same in each step")
    return graph.replay, made


def _drawn() -> tuple[object, ...]:
    """Returns the states of this process's generators, but for the GPU's."""
    return random.getstate(), str(np.random.get_state()), torch.default_generator.get_state().tolist()


class CapturedSteps:
    """The recorded steps of a network, for all trainings of its worker."""

    def __init__(self, net: Net, capture: Callable[..., Any] | None = None) -> None:
        """Raises BadInput if the network cannot be captured. capture: by default `on_gpu`."""
        if net.equilibria:
            raise _refused("the iterations of an equilibrium layer depend on its residual")
        if not net.first_state.in_place:
            raise _refused("a layer has tensors that are neither parameters nor buffers; register them as buffers")
        self._net, self._capture = net, capture or on_gpu
        self._recipes: dict[Hashable, Recipe] = {}

    def recipe(self, part: str | None, settings: Local, own: bool) -> Recipe:
        """Returns how a part of the parameters is trained, whatever the rate.

        own: whether the algorithm brings functions that hold tensors of a client. Raises BadInput if it does.
        """
        if own:
            raise _refused("the algorithm has a loss, a gradient or a correction of gradients of its own")
        tensors = (*self._net.module.parameters(), *self._net.module.buffers())  # which quantised modules may replace
        key = part, repr([getattr(settings, name) for name in FIXED]), tuple(one.data_ptr() for one in tensors)
        return _last(self._recipes, key, lambda: Recipe(self._net, part, settings, self._capture))


class _Recording(NamedTuple):
    places: Sequence[Tensor]  # where what is given is copied to
    replay: Callable[[], None]
    loss: Tensor
    seen: int  # samples that the network counts in a step
    passes: float


class Recipe:
    """How a part of the parameters is trained: its gradient, and steps whose vectors stay where they are."""

    def __init__(self, net: Net, part: str | None, settings: Local, capture: Callable[..., Any]) -> None:
        self._net, self._part, self._capture = net, net.part(part), capture
        self.steps = Steps(settings, net, self._part, captured=True)
        plain = partial(net.gradients, parameters=self._part.parameters)
        # Parts that draw, or take gradients of single samples, are refused with the scenario.
        self.take = gradient_of(settings.gradients, self._part, plain, _unavailable, _unavailable, None)
        self._met: Counter[Hashable] = Counter()
        self._recordings: dict[Hashable, _Recording] = {}

    def __call__(self, taken: int, x: Tensor, y: Tensor, extra: Tensor | None) -> Tensor:
        """Takes a step, and returns the batch's loss, 0-d. It is recorded once for each shape of a batch.

        taken: how many steps the training has taken before. extra: what is added to the gradient, (n,), or None.
        Raises BadInput if the step cannot be captured.
        """
        given = x, y, extra, self.steps.numbers(taken)
        tensors = [tensor for one in given for tensor in _tensors(one)]
        form = (extra is None, *((one.shape, one.stride(), one.dtype) for one in tensors))
        self._met[form] += 1
        if self._met[form] <= BEFORE:
            return self._step(*given)
        recording = _last(self._recordings, form, lambda: self._record(*map(_copied, given)))
        for place, one in zip(recording.places, tensors, strict=True):
            place.copy_(one)
        recording.replay()
        self._net.seen += recording.seen
        self._net.passes += recording.passes
        return recording.loss.clone()

    def _step(self, x: Tensor, y: Tensor, extra: Tensor | None, numbers: Any) -> Tensor:
        loss, gradients = self.take(x, y, None)
        self.steps(gradients, extra, numbers)
        self._part.project()
        return loss

    def _record(self, *places: Any) -> _Recording:
        net, state = self._net, self._net.first_state
        seen, passes, held = net.seen, net.passes, state.held()
        try:
            replay, loss = self._capture(lambda: self._step(*places))
        except RuntimeError as error:
            raise _refused(str(error).splitlines()[0]) from error
        for before, after in zip(held, state.held(), strict=True):
            if before.keys() != after.keys() or any(after[name] is not value for name, value in before.items()):
                raise _refused("a layer sets attributes in each pass, and a graph runs none of its code")
        counted = net.seen - seen, net.passes - passes
        net.seen, net.passes = seen, passes
        return _Recording([one for some in places for one in _tensors(some)], replay, loss, *counted)


def _last(kept: dict[Hashable, T], key: Hashable, make: Callable[[], T]) -> T:
    """Returns what is kept under a key, or is made, as the last one; the first of too many goes."""
    kept[key] = made = kept.pop(key, None) or make()
    if len(kept) > KEPT:
        del kept[next(iter(kept))]
    return made


def _tensors(some: Any) -> list[Tensor]:
    return [] if some is None else [some] if isinstance(some, Tensor) else [one for _, one in some.items()]


def _copied(some: Any) -> Any:
    return some if some is None else some.clone() if isinstance(some, Tensor) else some.map(torch.clone)


def _unavailable(*_: Any) -> Any:
    raise RuntimeError("it draws with a generator, or takes gradients of single samples")


def _refused(why: str) -> BadInput:
    text = f"must be off, because the steps of this scenario cannot be captured: {why}"
    return BadInput("resources.cuda_graphs", f"{text}; set it to off")
