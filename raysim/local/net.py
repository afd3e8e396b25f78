"""The network of a worker: one torch module, with which all of its clients train in turn."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor, nn

from raysim.local.chain import Chain
from raysim.local.first_state import FirstState, has_own_mode
from raysim.local.head import head_of
from raysim.local.model import Model, Trainable, gradient_of_each
from raysim.local.outputs import LOSSES, LossFunction, cross_entropy
from raysim.local.samples import Pixels
from raysim.models.equilibrium import Equilibrium, Solves
from raysim.models.layers import norms_of, required_norms, spare_single_values
from raysim.models.layout import Layout, pairs_of
from raysim.models.part import Norm
from raysim.parts.errors import BadValue

ALIKE = {nn.Sequential, nn.Flatten, nn.Linear, nn.ReLU}  # modules that are the same in training and in eval mode


@contextmanager
def _tf32() -> Iterator[None]:
    """Lets matrix products and convolutions of a GPU round to TF32."""
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before


class Net:
    """A module whose parameters are views of one flat vector `w`, so that changing `w` in place changes the module."""

    def __init__(
        self,
        module: nn.Module,
        personal: tuple[str, ...],
        loss: str | Callable[..., Tensor],
        device: torch.device,
        *,
        channels_last: bool = True,
        norm: Norm = "average",
        head: str | None = None,
    ) -> None:
        """loss: one of LOSSES, or its name there. channels_last, norm: as in Layout. head: the name of the module whose
        input is the embedding; None: the first of the personal part, else the last linear layer."""
        self.module = module.to(device)
        spare_single_values(self.module)
        self.layout = Layout(self.module, personal, channels_last=channels_last, norm=norm)
        self._in_eval_mode = [*required_norms(self.module, norm).values()] if norm == "frozen" else []
        self.w = self.layout.flatten(self.module)
        self.layout.bind(self.module, self.w)
        self.first_state = FirstState(self.module, self.layout)
        self._has_one_mode = all(type(one) in ALIKE for one in self.module.modules())
        self._has_own_modes = any(map(has_own_mode, self.module.modules()))
        self._pairs = pairs_of(self.module, self.layout)
        self.loss = LOSSES[loss] if isinstance(loss, str) else loss
        self.device = device
        self._personal, self._head = personal, head
        self.parameters = self.layout.select(self.module)
        frozen = (parameter for parameter in self.module.parameters() if not parameter.requires_grad)
        self.frozen_bytes = sum(parameter.numel() * parameter.element_size() for parameter in frozen)
        norms = norms_of(self.module)
        self.norms = [e.name for e in self.layout.entries if e.name.rpartition(".")[0] in norms]  # parameters of these
        self.equilibria = [m for m in self.module.modules() if isinstance(m, Equilibrium)]
        self._busy = False
        self._halved = False  # whether passes compute in bfloat16
        self.pixels: Pixels | None = None  # of inputs, if they are images
        self.classes = 0  # the number of different labels
        self.captured: dict[Hashable, Any] | None = None  # what graphs record of it; None: they do not
        self.seen = 0  # how many samples gradients were taken of, repeats counted
        self.steps = 0  # how many steps optimisers took
        self.passes = 0.0  # how many samples passed through the network; a backward pass counts as two
        cut = self.layout.cut
        first = sum(entry.offset < cut for entry in self.layout.entries)
        of = partial(Trainable.of, self.module, self.w, self.layout)
        self._parts = {
            None: of(slice(None), slice(None)),
            "shared": of(slice(cut), slice(first)),
            "personal": of(slice(cut, None), slice(first, None)),
        }

    @property
    def normalises_batches(self) -> bool:
        """Whether BatchNorms normalise by the batch in training."""
        norms = (one for one in self.module.modules() if isinstance(one, nn.modules.batchnorm._BatchNorm))
        return any(norm not in self._in_eval_mode for norm in norms)

    @property
    def predicted(self) -> float:
        """How many samples passed forward without a gradient."""
        return self.passes - 3 * self.seen

    def model(self) -> Model:
        """Returns a copy of the module's values."""
        buffers = self.layout.flatten_buffers(self.module) if self.layout.buffers else self.w.new_empty(0)
        return Model(self.w.clone(), buffers, self.layout.cut, self.layout.buffers_cut, self._pairs)

    def retaken(self) -> Model:
        """Returns the values of the module's parameters and buffers, also of tensors that stand in the place of those
        that were views of `w`, and makes them views again."""
        self.w.copy_(self.layout.flatten(self.module))
        self.layout.bind(self.module, self.w)
        return self.model()

    def load(self, model: Model) -> None:
        """Gives the module the model's values, and what no model holds its first values.

        Raises ValueError if the model has another size, and RuntimeError while the module is being trained.
        """
        if self._busy:
            raise RuntimeError(
                "task.gradient, predict and train use the module that is being trained: call them before"
            )
        if model.w.shape != self.w.shape:
            raise BadValue(f"a model must have {len(self.w)} parameters, got {tuple(model.w.shape)}")
        if self._has_own_modes:
            self.mode(training=True)  # what evaluation made of the old values, such as merged layers, must go first
        self.first_state.restore()
        self.w.copy_(model.w)
        if self.layout.buffers:
            self.layout.load_buffers(self.module, model.buffers)

    def mode(self, training: bool) -> None:
        """Puts the module in training or eval mode, in which it may keep parts of it otherwise. Frozen norms stay in
        eval mode.

        It is always told, whatever its mode seems to be, so that no training depends on what this process did before.
        """
        if self._has_one_mode:
            return
        if training:
            self.module.train()
        else:
            self.module.eval()  # which a module may have of its own, and need not be train(False)
        for norm in self._in_eval_mode:
            norm.eval()

    def seed(self, seed: int) -> None:
        """Seeds the device's generator, which dropout draws from."""
        # Not torch.manual_seed: each call keeps a traceback for every kind of device that is not in use yet.
        if self.device.type == "cuda":
            torch.cuda.manual_seed(seed)
        else:
            torch.default_generator.manual_seed(seed)

    def part(self, name: str | None) -> Trainable:
        """Returns a part of the module: "shared", "personal", or all of it (None)."""
        return self._parts[name]

    @cached_property
    def head(self) -> nn.Module:
        """The module whose input is an embedding, see `head_of`."""
        return head_of(self.module, self._head, self._personal)

    def take_solves(self) -> Solves:
        """Returns what the equilibrium layers have solved since the last call."""
        solves = Solves()
        for layer in self.equilibria:
            solves, layer.solved = solves.plus(layer.solved), Solves()
        return solves

    def gradients(
        self, x: Tensor, y: Tensor, parameters: list[nn.Parameter], loss: LossFunction | None = None
    ) -> tuple[Tensor, Sequence[Tensor]]:
        """Returns a batch's loss, 0-d, and its gradient for each parameter. loss: by default the data's own, a mean.

        The next call may overwrite the gradients.
        """
        if not len(y):  # a mini-batch that was drawn may hold no sample
            return self.w.new_zeros(()), [torch.zeros_like(parameter) for parameter in parameters]
        self._count(len(y))
        whole = loss is None and len(parameters) == len(self.parameters)
        if whole and (chain := self._chain_for(x, y)):
            return chain(x, y)
        with self._casting():
            outputs = self.module(x)
        value = (loss or self.loss)(outputs.float() if self._halved else outputs, y)
        return value.detach(), torch.autograd.grad(value, parameters, allow_unused=True, materialize_grads=True)

    def gradient_of_each(
        self, x: Tensor, y: Tensor, parameters: list[nn.Parameter], loss: LossFunction | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """Returns the loss of each sample of a batch, (n,), and its gradient for each parameter, (n, ...)."""
        self._count(len(y))
        with self._casting():
            return gradient_of_each(self.module, parameters, loss or self.loss, x, y)

    def descend(self, x: Tensor, y: Tensor, lr: float, extra: Tensor | None) -> Tensor | None:
        """Takes a step of plain SGD with all parameters on the data's own mean loss.

        Returns the batch's loss before the step, 0-d. Does nothing and returns None if `Chain` is not made for the
        module or the batch. extra: a vector (size,) that is added to the gradient, or None.
        """
        if not (chain := self._chain_for(x, y)):
            return None
        self._count(y.shape[0])
        return chain.descend(x, y, self.w, lr, extra)

    def _count(self, samples: int) -> None:
        self.seen += samples
        self.passes += 3 * samples

    def _casting(self) -> AbstractContextManager[object]:
        return torch.autocast(self.device.type, torch.bfloat16) if self._halved else nullcontext()

    def _chain_for(self, x: Tensor, y: Tensor) -> Chain | None:
        return self._chain if self._chain and not self._halved and self._chain.takes(x, y) else None

    @cached_property
    def _chain(self) -> Chain | None:
        """The module as a chain of linear layers, if it is one, and learns labels."""
        _, views = self.part(None).flat()
        in_order = [id(parameter) for parameter in self.module.parameters()] == [id(one) for one in self.parameters]
        return Chain.of(self.module, views) if self.loss is cross_entropy and in_order else None

    @contextmanager
    def training(self, start: Model, precision: str = "float32") -> Iterator[None]:
        """Puts the module in training mode with the values of `start`, and refuses `load` until training is over.

        precision: as in `Local`.
        """
        self.load(start)
        self.mode(training=True)
        self._busy = True
        self._halved = precision == "bfloat16"
        try:
            with _tf32() if precision == "tf32" else nullcontext():
                yield
        finally:
            self._busy = self._halved = False

    @contextmanager
    def evaluating(self, model: Model) -> Iterator[nn.Module]:
        """Gives the module the model's values, in eval mode and without recording gradients."""
        self.load(model)
        self.mode(training=False)
        with torch.no_grad():
            yield self.module
