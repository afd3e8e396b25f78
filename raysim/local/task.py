"""What an algorithm may do with the data of a client, or of the server."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import cache, partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from raysim.data.meaning import in_pieces
from raysim.local.head import embedding, entering, head_of, rows_of
from raysim.local.logged import Logged
from raysim.local.loop import Goal, Trained, batches, train
from raysim.local.model import Model
from raysim.local.nested import Inner, Nested
from raysim.local.net import Net
from raysim.local.outputs import LossFunction
from raysim.local.samples import Augmenter, Samples
from raysim.local.settings import Local
from raysim.local.steps import Correction, Plain, goes_on, require_trainable
from raysim.models.layout import LayerBlock
from raysim.parts.errors import BadValue
from raysim.parts.rng import stream_of, torch_seed
from raysim.terms import Moment, Population, Record

PREDICTED = 250  # inputs in a batch of predictions; fixed, because results depend on it bit by bit


class Task:
    """A client, or the server, at work: the model that it received, its samples, and what can be done with them."""

    table: ClassVar[str] = "updates"
    """The table that has a row for it."""

    def __init__(
        self,
        net: Net,
        received: Model,
        samples: Samples,
        local: Local,
        population: Population,
        key: tuple[int, int, int],
        public: Callable[[], Tensor] | None = None,
    ) -> None:
        self.received = received
        self._samples = samples
        self.local = local
        self.population = population
        self._net = net
        self._begun = net.passes
        self._key = key
        self.client = key[1]
        """The number of the client, or peer, at work."""
        self.dispatch = key[2]
        """How many dispatches the client had before, or how often the peer mixed."""
        self._public = public
        self._shown: Tensor | None = None  # the public inputs, once they were asked for
        self.logged = Logged({}, {})  # what `log` was given
        self.moment = Moment()
        """When the client was dispatched, the server steps, or the peer trains or mixes: the rounds that are over, the
        server's version (for a peer: its mixes), and virtual time."""
        self.group: str | None = None
        """The name of the client's or peer's group in `clients`; None where it is in none."""
        self.level = 1.0
        """The width of the client's model, as a share of the server's."""
        self.own_labels: Callable[[], Tensor] = lambda: torch.empty(0)
        """Returns the different labels, or targets, of the client's samples, ascending."""
        self.inner: Callable[[float], Inner]
        """Returns the network of a level below the client's."""
        self.private = False
        """Whether its samples are protected, so that only `train`, which adds noise, may use them."""
        self.optimizer: Record = {}  # the kept state of an optimiser, changed by trainings of stream 0

    @property
    def x(self) -> Tensor:
        """The inputs of all samples, (n, ...) float32, or int64 tokens; or several tensors by name, of which `x[rows]`
        takes rows. They are loaded when first asked for."""
        self._require_public("task.x")
        return self._samples.all[0]

    @property
    def y(self) -> Tensor:
        """The labels of all samples, (n, ...) int64, or their targets, (n, ...) float32."""
        self._require_public("task.y")
        return self._samples.all[1]

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Returns the mean loss of a mini-batch, 0-d, as the data or `run.loss` have it."""
        return self._net.loss(outputs, targets)

    @property
    def rows(self) -> Tensor | None:
        """Which parameters the client's labels have, (size,) of 0 and 1: all but the rows of other labels in the last
        layer; None if these are all, or the data have no labels."""
        self._require_public("task.rows")
        return rows_of(self._net, self.own_labels())

    @property
    def public(self) -> Tensor:
        """The inputs of the scenario's `public:` samples, (n, ...). All clients have the same, in the same order."""
        if self._public is None:
            raise BadValue("task.public: the scenario must have public samples, and has none; add `public:`")
        self._shown = self._public()
        return self._shown

    @property
    def samples(self) -> int:
        """How many samples there are."""
        return len(self._samples)

    def log(self, **numbers: float | Tensor | None) -> None:
        """Writes numbers into custom columns of the algorithm, given by name: into this row of the table `updates` or,
        in a server step, of `steps`.

        A column begins with the first row that has it, and is null in the others. It may be called again; the last
        value of a name counts. NaN and infinity are kept as they are. Raises TypeError for anything but numbers, and
        ValueError for a name that the table has already, but for those of columns that tasks fill, such as `penalty`.
        """
        for name, value in numbers.items():
            self.logged.log(self.table, name, value)

    def train(
        self,
        start: Model,
        *,
        part: str | None = None,
        correction: Correction | None = None,
        tolerance: float | Tensor | None = None,
        relative: bool = False,
        data: tuple[Tensor, Tensor] | Samples | None = None,
        loss: LossFunction | None = None,
        embedded: bool = False,
        stream: int = 0,
        gradient: Plain | None = None,
        **settings: Any,
    ) -> Trained:
        """Trains a model from `start`, as the scenario's `local:` says, and returns the result.

        part: "shared" or "personal", to train only that part of the parameters.
        correction: a function from w to a vector that is added to the gradient, such as the gradient of a proximal
            term, a dual or a control variate. It takes and returns the part that is trained. One of two arguments, w
            and g, gets the gradient of the mini-batch, too, as `local.gradients` leaves it, and must not change it.
        tolerance: stop once the norm of the followed gradient is at most this. The followed gradient is that of the
            trained part over all samples, with correction and weight decay. It is measured before each epoch, in eval
            mode, at the cost of a pass through all samples. If a mini-batch is all samples, the gradient of the next
            step is taken instead, in training mode and at no cost. Training may stop before its first step.
        relative: whether the tolerance is a fraction of the norm at `start`.
        data: inputs (n, ...) and targets (n, ...), or samples, to train on instead of the task's own.
        loss: a function from the outputs and targets of a mini-batch to the value to minimise, 0-d, instead of the
            mean of the data's own loss, which is `task.loss`.
        embedded: whether this function also gets, as a third argument, the embeddings of the mini-batch, (n, ...), with
            their gradient: what enters the personal part or, if nothing is personal, the last linear layer.
        stream: a number that chooses the order of mini-batches and the dropout masks. Trainings of one task with the
            same stream see the same mini-batches.
        gradient: a function from the inputs and targets of a mini-batch to its loss, 0-d, and its gradient for each
            parameter of all, instead of those of the loss.
        settings: keys of `local:`, with the values to take instead.

        Raises TypeError for an unknown keyword, and ValueError for a wrong value or a part without parameters.
        """
        if tolerance is not None:
            self._require_public("a tolerance")
        net, local = self._net, self.local.changed(settings, self.train) if settings else self.local
        require_trainable(net, local, part, loss, embedded, gradient)
        seen, own = net.seen, not isinstance(data, tuple) or data[0] is not self._shown
        samples = self._samples if data is None else Samples.of(*data) if isinstance(data, tuple) else data
        draws = cache(lambda purpose: self.generator(f"{purpose} {stream}"))
        kept = self.optimizer if stream == 0 and self.optimizer and goes_on(self.local, local) else None
        with embedding(net.head, loss) if embedded and loss else nullcontext(loss) as of_batch:
            goal = Goal(part, correction, tolerance, relative, of_batch, gradient)
            trained = train(net, start, samples, local, self._order(stream), goal, draws, kept)
        if not own:  # a client's samples alone count as seen; others are work besides, which raysim measures
            net.seen = seen
        return trained._replace(logged=self.logged.columns)

    def train_by(self, start: Model, loop: Callable[[torch.nn.Module], None]) -> Trained:
        """Trains a model from `start` by a loop of plain PyTorch, and returns the result, without losses.

        loop: gets the network in training mode, with the values of `start`, and changes them in place, as optimisers of
            torch and `load_state_dict` do. It may take those of `mini_batches`.

        It counts as the steps and samples that `local` says, because computed delays are known before training.
        """
        self._require_public("task.train_by")
        steps = self.local.total_steps(self.samples)
        with self._net.training(start, self.local.precision):
            loop(self._net.module)
            model = self._net.retaken()
        self._net.steps += steps
        self._net.seen += (seen := self.local.total_samples(self.samples))
        self._net.passes += 3 * seen
        return Trained(model, torch.tensor(steps), None, None, logged=self.logged.columns)

    def mini_batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yields the inputs (n, ...) and targets (n, ...) of each mini-batch of one training, as `local` says: those
        that `train` takes with `stream` 0."""
        self._require_public("task.mini_batches")
        draws = cache(lambda purpose: self.generator(f"{purpose} 0"))
        augment = Augmenter(self.local.augment, self._net.pixels, self._net.classes, partial(draws, "augment"))
        for x, y in batches(self._samples, self.local, self._order(0)):
            yield augment(x, y) if self.local.augment and len(y) else (x, y)

    def _order(self, stream: int) -> np.random.Generator:
        """Seeds the device's generator. Returns what chooses the order of mini-batches, valid until the next call."""
        seed, client, number = self._key
        order = stream_of(seed, f"train {stream}")(client, number)
        self._net.seed(int(order.integers(2**63)))
        return order

    def nested(self, levels: Sequence[float], statistics: Tensor) -> Nested:
        """Returns the networks of the client's level and of narrower ones, which share their parameters.

        levels: those of the narrower ones, the largest first. statistics: the buffers of each, those of the client's
        level first, (n, b).
        """
        return Nested(self._net, [self.inner(level) for level in levels], statistics)

    def logits(self) -> list[Tensor]:
        """Returns the logits of each exit, (n, ..., classes), of the mini-batch whose loss is taken; those of the first
        part first. The model must have exits."""
        return list(self._net.module.take_logits().values())  # type: ignore[operator]

    def blocks(self) -> list[list[LayerBlock]]:
        """Returns the blocks of layers of each part of a model with exits, without the last layer."""
        return [[self._net.layout.block(name) for name in part] for part in self._net.module.blocks]  # type: ignore[union-attr]

    def _require_public(self, what: str) -> None:
        """Raises ValueError if the client's samples are protected."""
        if self.private:
            text = f"must not use {what} where privacy.unit is sample, because the result would have no noise"
            raise BadValue(f"task: an algorithm {text}; take another one, or leave `privacy` out")

    def generator(self, purpose: str) -> torch.Generator:
        """Returns a new generator on the task's device, for draws such as `torch.randn(n, generator=...)`.

        Its stream depends on the seed, on the purpose, and on the client and its dispatch (or, in a server step, on the
        version). The same purpose starts the same stream again. A peer's `local` and the `mix` after it share a key, so
        their purposes must differ if their draws are to differ.
        """
        seed, *ids = self._key
        made = torch.Generator(self._net.device)
        made.manual_seed(torch_seed(seed, f"own {purpose}", *ids))
        return made

    def residual(self, model: Model, *, correction: Correction | None = None) -> Tensor:
        """Returns the norm, 0-d, that training from this model compares with a tolerance before its first step."""
        measured = self.train(model, correction=correction, tolerance=math.inf).residual
        assert measured is not None
        return measured

    def gradient(self, model: Model) -> Tensor:
        """Returns the gradient of the mean loss over all samples, (size,), in eval mode."""
        return self._gradient(model, self.x, self.y)

    def _gradient(self, model: Model, x: Tensor, y: Tensor, loss: LossFunction | None = None) -> Tensor:
        self._net.load(model)
        self._net.mode(training=False)
        part = self._net.part(None)
        _, gradients = self._net.gradients(x, y, part.parameters, loss)
        return part.joined(gradients)

    def predict(self, model: Model, inputs: Tensor) -> Tensor:
        """Returns the logits, (n, ...), of inputs (n, ...), in eval mode."""
        self._net.passes += len(inputs)
        with self._net.evaluating(model) as module:
            return torch.cat([module(batch) for batch in in_pieces(inputs, PREDICTED)])

    def embed(self, model: Model, inputs: Tensor, at: str | None = None) -> Tensor:
        """Returns the embeddings, (n, ...), of inputs (n, ...), in eval mode.

        at: the name of the sub-module that an embedding enters. None: the model's personal part or, if nothing is
        personal, its last linear layer. Raises ValueError if the model has no such sub-module.
        """
        self._net.passes += len(inputs)
        module = self._net.head if at is None else head_of(self._net.module, at, ())
        with entering(module) as entered, self._net.evaluating(model) as whole:
            for batch in in_pieces(inputs, PREDICTED):
                whole(batch)
        return torch.cat(entered)
