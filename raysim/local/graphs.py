"""CUDA graphs: the kernels of a local step, recorded once and then started together, with the same bits.

On a small network, starting a step's kernels one by one takes longer than running them. A recorded step reads and
writes the same memory each time: the flat vector, the optimiser's state, and copies of what differs between steps.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from raysim.data.meaning import NamedArrays, by_name
from raysim.local.first_state import FirstState
from raysim.local.gradients import GradientPoint
from raysim.local.net import Net
from raysim.local.settings import Local
from raysim.local.steps import Steps, gradient_of
from raysim.parts.errors import BadInput
from raysim.terms import Record

DEVICE = "cuda"  # whose kernels can be recorded; tests let a CPU stand in for it
BEFORE = 3  # steps of a shape whose kernels are started one by one, in which libraries set themselves up
KEPT = 8  # of shapes, the first to come so often, and of settings, which schedules may change
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


def require_capturable(net: Net) -> None:
    """Raises BadInput if steps of a network cannot be recorded."""
    if net.equilibria:
        raise _refused("the iterations of an equilibrium layer depend on its residual")
    if not net.first_state.in_place:
        raise _refused("a layer has tensors that are neither parameters nor buffers; register them as buffers")


def captured_steps(net: Net, part: str | None, settings: Local, own: bool) -> CapturedSteps:
    """Returns the steps of a part, which all trainings with these settings share, whatever the rate.

    own: whether the algorithm brings functions, which hold tensors of one client. Raises BadInput if it does.
    """
    if own:
        raise _refused("the algorithm has a loss, a gradient or a correction of gradients of its own")
    tensors = (*net.module.parameters(), *net.module.buffers())  # which quantised modules may replace
    key = part, repr([getattr(settings, name) for name in FIXED]), tuple(one.data_ptr() for one in tensors)
    assert net.captured is not None
    steps: CapturedSteps = net.captured.get(key) or CapturedSteps(settings, net, part)
    if len(net.captured) == KEPT and key not in net.captured:
        del net.captured[next(iter(net.captured))]
    net.captured[key] = steps
    return steps


class CapturedSteps(Steps):
    """Steps that are recorded, once for each shape of a batch. Their vectors stay where they are."""

    def __init__(self, settings: Local, net: Net, part: str | None) -> None:
        trained = net.part(part)
        plain = partial(net.gradients, parameters=trained.parameters)
        point = GradientPoint(trained.w, trained.pieces, _unavailable, _unavailable, None)
        self._gradient = trained.flat()
        take = gradient_of(settings.gradients, trained, plain, point, self._gradient)
        super().__init__(settings, net, trained, take, captured=True)
        self._net = net
        self._met: Counter[Hashable] = Counter()
        # Of each shape: where what is given is copied to, what runs the kernels, the loss, and what the network counts.
        self._recordings: dict[Hashable, tuple[list[Tensor], Callable[[], None], Tensor, int, float]] = {}

    def begin(self, settings: Local, steps: int, kept: Record | None = None) -> None:
        super().begin(settings, steps, kept)
        self._gradient[0].zero_()  # what pads it may be NaN, after a training that diverged

    def __call__(self, x: Tensor, y: Tensor, extra: Tensor | None, numbers: Any, *known: Any) -> Tensor:
        """Takes a step. Raises BadInput if it cannot be recorded."""
        tensors = _tensors(x, y, extra, numbers)
        form = (extra is None, *((one.shape, one.stride(), one.dtype) for one in tensors))
        self._met[form] += 1
        new = form not in self._recordings
        if known[0] is not None or (new and (self._met[form] <= BEFORE or len(self._recordings) == KEPT)):
            return super().__call__(x, y, extra, numbers, *known)
        if new:
            self._recordings[form] = self._record(x, y, extra, numbers)
        places, replay, loss, seen, passes = self._recordings[form]
        for place, one in zip(places, tensors, strict=True):
            place.copy_(one)
        replay()
        self._net.seen += seen
        self._net.passes += passes
        return loss.clone()

    def _record(self, x: Any, y: Tensor, extra: Tensor | None, numbers: Tensor) -> Any:
        net, state = self._net, self._net.first_state
        if not FirstState(net.module, net.layout).in_place:
            raise _refused("a layer keeps a tensor of an earlier pass, which goes when the next client begins")
        x = x.map(torch.clone) if isinstance(x, NamedArrays) else x.clone()
        y, numbers, extra = y.clone(), numbers.clone(), extra if extra is None else extra.clone()
        seen, passes, held = net.seen, net.passes, state.held()
        try:
            replay, loss = on_gpu(lambda: Steps.__call__(self, x, y, extra, numbers))
        except RuntimeError as error:
            first: BaseException = error
            while first.__context__:  # the end of a broken recording raises an error, too
                first = first.__context__
            if isinstance(first, torch.OutOfMemoryError):  # whose cure is another
                raise first from None
            raise _refused(str(first).splitlines()[0]) from error
        for before, after in zip(held, state.held(), strict=True):
            if before.keys() != after.keys() or any(after[name] is not value for name, value in before.items()):
                raise _refused("a layer sets attributes in each pass, and a graph runs none of its code")
        counted = net.seen - seen, net.passes - passes
        net.seen, net.passes = seen, passes
        return _tensors(x, y, extra, numbers), replay, loss, *counted


def _tensors(x: Any, *others: Tensor | None) -> list[Tensor]:
    return [one for one in (*by_name(x).values(), *others) if one is not None]


def _unavailable(*_: Any) -> Any:
    raise _refused("a part of local.gradients draws, or takes gradients of single samples")


def _refused(why: str) -> BadInput:
    text = f"must be off, because the steps of this scenario cannot be captured: {why}"
    return BadInput("resources.cuda_graphs", f"{text}; set it to off")
