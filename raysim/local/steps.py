"""The steps of one training: the gradient of a mini-batch, what an algorithm adds to it, and an optimiser at work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from inspect import signature
from typing import Any

import torch
from torch import Tensor

from raysim.local.gradients import Gradient, GradientPoint, PerSample
from raysim.local.model import Trainable
from raysim.local.net import Net
from raysim.local.optimizers import AdamW, Number, Optimizer, add
from raysim.local.outputs import LossFunction
from raysim.local.settings import Local, grouped
from raysim.parts.errors import BadInput, BadValue
from raysim.terms import Record

BatchGradient = tuple[Tensor, Sequence[Tensor]]  # a batch's loss, 0-d, and the gradient of each parameter
Plain = Callable[[Tensor, Tensor], BatchGradient]  # from the inputs and targets of a batch
Taken = Callable[[Tensor, Tensor, BatchGradient | None], BatchGradient]  # the last: the plain one, if it is there
# From the flat vector, or the part of it that is trained, to a vector that is added to its gradient, such as that of a
# proximal term, a dual or a control variate. One with a second argument gets that gradient, too.
Correction = Callable[..., Tensor]
TAKEN = "steps taken"  # the entry of a kept state that counts steps; the others are those of `Optimizer.init`


def decayed(vector: Tensor, w: Tensor, decay: Tensor | float) -> Tensor:
    """Adds weight decay to a gradient, (n,), in place. decay: one for all, or (n,)."""
    if isinstance(decay, Tensor):
        return vector.addcmul_(w, decay)
    return vector.add_(w, alpha=decay) if decay else vector


class AddedGradient:
    """A correction at work, or none. by_gradient: whether it gets the gradient, too."""

    def __init__(self, correction: Correction | None, part: Trainable) -> None:
        self._correction, self._part = correction, part
        self.by_gradient = correction is not None and _takes_two(correction)
        if self.by_gradient:
            self._vector, self._views = part.flat()

    def ahead(self) -> Tensor | None:
        """Returns what is added, before the gradient is known; None if nothing is, or if it depends on the gradient."""
        return None if self._correction is None or self.by_gradient else self._correction(self._part.w)

    def to(self, gradients: Sequence[Tensor], ahead: Tensor | None) -> Tensor | None:
        """Returns what is added to the gradients of the parameters. ahead: what the method of that name returned."""
        if self._correction is None or not self.by_gradient:
            return ahead
        torch._foreach_copy_(self._views, list(gradients))
        return self._correction(self._part.w, self._vector)


def _takes_two(correction: Callable[..., Any]) -> bool:
    needed = [one for one in signature(correction).parameters.values() if one.default is one.empty]
    return sum(one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in needed) == 2


def gradient_of(
    parts: Sequence[Gradient],
    trained: Trainable,
    plain: Plain,
    point: GradientPoint,
    flat: tuple[Tensor, list[Tensor]] | None = None,
) -> Taken:
    """Returns a function that takes the gradient of a batch as the parts, `local.gradients`, say.

    It gets the batch and, if that is taken already, its plain gradient. plain: takes that. flat: where it is joined, as
    `Trainable.flat` returns it; None: in a new vector.
    """
    if not parts:
        return lambda x, y, ready: ready or plain(x, y)
    vector, views = flat or trained.flat()
    waiting: list[tuple[Tensor, BatchGradient]] = []  # the plain gradient of a batch that is taken already

    def take(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        is_ready = waiting and waiting[0][0] is x  # a part may ask for that of a piece of the batch
        value, pieces = waiting.pop()[1] if is_ready else plain(x, y)
        torch._foreach_copy_(views, list(pieces))
        return value, vector

    for one in parts:
        take = partial(one.take, take, point)

    def taken(x: Tensor, y: Tensor, ready: BatchGradient | None) -> BatchGradient:
        waiting[:] = [] if ready is None else [(x, ready)]
        value, gradient = take(x, y)
        return value, point.pieces(gradient)

    return taken


class Steps:
    """Takes the steps of trainings of a part: the gradient, what is added to it, and a move by the optimiser.

    take: takes the gradient of a batch. captured: whether the steps are to be recorded by a graph.
    """

    def __init__(self, settings: Local, net: Net, part: Trainable, take: Taken, *, captured: bool = False) -> None:
        self._part, self._take, self._optimizer, self._plain = part, take, settings.optimizer, settings.plain
        self._factors, self.decay = grouped(settings.groups, settings.weight_decay, net, part)
        self._by_tensors = self._optimizer.captures and (part.w.is_cuda or captured)
        self._joins = self._by_tensors or not self._plain
        folds = type(self._optimizer) is AdamW and isinstance(self.decay, float) and not self._by_tensors
        self._further: dict[str, Any] = {"decay": self.decay} if folds else {}  # one pass over memory less
        if self._joins:
            self._vector, self._views = part.flat()
        self._state: Record = {}
        self.numbers: Any = ()
        """The rate of each step, and how many the optimiser has taken before it: a list, or on a GPU a tensor (n, 2),
        because reading a number there waits until all work is over."""

    def begin(self, settings: Local, steps: int, kept: Record | None = None) -> None:
        """Starts a training. settings: those of the steps, perhaps with another rate. steps: at most so many.

        kept: the state of an optimiser that continues, as `first_kept` makes it; None: it starts afresh.
        """
        span, first = self._part.span, self._optimizer.init(self._part.w)
        self._before = int(kept[TAKEN][span][:1]) if kept else 0
        self._state = self._state or first
        for name, vector in self._state.items():  # in place, because graphs know where it is
            if kept or vector is not first[name]:
                vector.copy_(kept[name][span] if kept else first[name])
        self.numbers = [(settings.rate(taken), self._before + taken) for taken in range(steps)]
        if self._by_tensors:
            self._vector.zero_()  # what pads it was added to in the training before
            kind = torch.float32 if self._part.w.is_cuda else torch.float64
            self.numbers = torch.tensor(self.numbers, dtype=kind).to(self._part.w.device)

    def __call__(
        self,
        x: Tensor,
        y: Tensor,
        extra: Tensor | None,
        numbers: Iterable[Number],
        ready: BatchGradient | None = None,
        added: AddedGradient | None = None,
    ) -> Tensor:
        """Takes a step, and returns the batch's loss before it, 0-d.

        extra: what is added to the gradient, (n,), as far as it is known before. numbers: those of the step. ready: the
        plain gradient, if it has been taken already. added: adds to the gradient once it is known.
        """
        loss, gradients = self._take(x, y, ready)
        self.move(gradients, added.to(gradients, extra) if added else extra, numbers)
        self._part.project()
        return loss

    def move(self, gradients: Sequence[Tensor], extra: Tensor | None, numbers: Iterable[Number]) -> None:
        """Moves the parameters. gradients: of each. extra: a vector (n,) that is added to them, or None."""
        w, plain, (lr, taken) = self._part.w, self._plain, numbers
        if plain and extra is not None:  # before w changes, for `extra` may be w itself
            add(w, extra, -lr)
        if not self._joins:  # which takes a tenth of a small network's step
            torch._foreach_add_(self._part.views, list(gradients), alpha=-lr)  # type: ignore[arg-type]
            return
        torch._foreach_copy_(self._views, list(gradients))
        gradient = self._vector if plain or extra is None else self._vector.add_(extra)
        before = None if self._factors is None else w.clone()
        if not self._optimizer.decoupled:
            decayed(gradient, w, self.decay)
        elif isinstance(self.decay, Tensor):
            w.addcmul_(w * lr, self.decay, value=-1)
        elif self.decay and not self._further:
            w.mul_(1 - lr * self.decay)
        self._optimizer.move(w, gradient, self._state, lr, taken, **self._further)
        if before is not None and self._factors is not None:  # a step grows in proportion to its rate
            w.copy_(before.lerp_(w, self._factors))

    def keep(self, kept: Record, taken: int) -> None:
        """Leaves the state in `kept`. taken: how many steps the training has taken."""
        for name, vector in self._state.items():
            kept[name][self._part.span] = vector
        kept[TAKEN][self._part.span] = self._before + taken


def first_kept(optimizer: Optimizer, w: Tensor) -> Record:
    """Returns what an optimiser with `keep` keeps for each client or peer before its first training; {} without it."""
    if not optimizer.keep or not (state := optimizer.init(w)):
        return {}
    # A part alone may be trained, so each entry of the vector has a count.
    return {**state, TAKEN: w.new_zeros(w.shape)}


def goes_on(kept: Local, local: Local) -> bool:
    """Whether a training uses the optimiser that keeps its state, perhaps with other numbers."""
    names = [one.optimizer.init(torch.zeros(1)).keys() for one in (local, kept)]
    return type(local.optimizer) is type(kept.optimizer) and names[0] == names[1]


def require_trainable(
    net: Net, local: Local, part: str | None, loss: LossFunction | None, embedded: bool, gradient: Plain | None
) -> None:
    """Raises ValueError for arguments of `Task.train` that do not go together."""
    if gradient is not None and any(isinstance(one, PerSample) for one in local.gradients):
        text = "must not have per_sample for an algorithm whose steps train several widths; leave it out"
        raise BadInput("local.gradients", text)
    if embedded and loss is None:
        raise BadValue("task.train: `embedded` needs a `loss`, because that of the data takes no embeddings; name one")
    if part not in (None, "shared", "personal"):
        raise BadValue(f"task.train: part must be 'shared', 'personal' or None, got {part!r}")
    if not net.part(part).parameters:
        raise BadValue(
            "task.train: part 'personal' must have parameters, got none; name them in the scenario's model.personal"
        )
