"""All that an algorithm may use of a client's, or the server's, data."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from raysim.local.model import Model
from raysim.local.net import LossFunction, Net
from raysim.local.samples import Samples
from raysim.local.settings import Local
from raysim.local.train import Correction, Trained, train
from raysim.rng import Stream
from raysim.terms import Population

PREDICTED = 250  # inputs at a time; fixed, for bits depend on it

_stream = lru_cache(maxsize=16)(Stream)  # by seed and purpose; to make a generator for each training takes long


class Task:
    """One client at work, or the server: a received model, the samples, and what can be done with them."""

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
        self._key = key  # seed, client, how often it was dispatched before
        self._public = public

    @property
    def client(self) -> int:
        """The number of the client, or peer, at work."""
        return self._key[1]

    @property
    def dispatch(self) -> int:
        """How often the client was dispatched before, or how often the peer mixed."""
        return self._key[2]

    @property
    def x(self) -> Tensor:
        """Inputs of all samples, (n, ...) float32; loaded when first asked for."""
        return self._samples.all[0]

    @property
    def y(self) -> Tensor:
        """Labels of all samples, (n,) int64."""
        return self._samples.all[1]

    @property
    def public(self) -> Tensor:
        """Inputs of the scenario's `public:` samples, (n, ...) float32: the same for all, in one order."""
        if self._public is None:
            raise ValueError("task.public: the scenario must have public samples, and has none; add `public:`")
        return self._public()

    @property
    def samples(self) -> int:
        """How many there are."""
        return len(self._samples)

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
        stream: int = 0,
        **settings: Any,
    ) -> Trained:
        """Training from `start`, as the scenario's `local:` says unless `settings` (fields of it) say otherwise.

        part: "shared" or "personal": train only that. correction: from w to what is added to the gradient, as a
        proximal term, a dual or a control variate; it gets and gives the part that is trained.

        tolerance: stop once the norm of the gradient that is followed (over all samples, of the part, with correction
        and weight decay) is at most this; `relative`: at most this fraction of what it is at `start`. It is measured
        before each epoch, in eval mode, which costs a pass through all samples. Where a batch is all samples, it is
        the next step's own gradient, in training mode, at no cost. There may be no step at all.

        data: inputs (n, ...) and targets (n, ...), or samples, to train on instead of one's own. loss: from outputs and
        targets of a mini-batch to what is minimised, 0-d, instead of the mean of the data's own loss.

        stream: names the order of batches and the dropout masks: the same stream, the same batches.
        """
        if "epochs" in settings:
            settings = {"steps": None, **settings}  # else the scenario's `steps` would have the last word
        local = Local.model_validate({**self.local.model_dump(), **settings}) if settings else self.local
        seed, client, number = self._key
        order = _stream(seed, f"train {stream}")(client, number)  # until the next training
        self._net.seed(int(order.integers(2**63)))
        return train(
            self._net,
            start,
            self._samples if data is None else Samples.of(*data) if isinstance(data, tuple) else data,
            local,
            order,
            part=part,
            correction=correction,
            tolerance=tolerance,
            relative=relative,
            loss=loss,
        )

    def residual(self, model: Model, *, correction: Correction | None = None) -> Tensor:
        """The norm, 0-d, that training from this model would compare with a tolerance before its first step."""
        measured = self.train(model, correction=correction, tolerance=math.inf).residual
        assert measured is not None
        return measured

    def gradient(self, model: Model) -> Tensor:
        """Of the mean loss over all samples, in eval mode, (size,)."""
        self._net.load(model)
        self._net.mode(training=False)
        part = self._net.part(None)
        _, gradients = self._net.gradients(self.x, self.y, part.parameters)
        whole, views = part.flat(self._net.layout)
        for view, gradient in zip(views, gradients, strict=True):
            view.copy_(gradient)
        return whole

    def predict(self, model: Model, inputs: Tensor) -> Tensor:
        """Logits of the inputs (n, ...), in eval mode."""
        self._net.passes += len(inputs)
        with self._net.evaluating(model) as module:
            return torch.cat([module(batch) for batch in torch.split(inputs, PREDICTED)])

    def embed(self, model: Model, inputs: Tensor) -> Tensor:
        """What enters the model's personal part, or its last linear layer where nothing is personal, in eval mode.

        inputs: (n, ...). Gives (n, ...).
        """
        self._net.passes += len(inputs)
        entered: list[Tensor] = []
        hook = self._net.head.register_forward_pre_hook(lambda _, given: entered.append(given[0]))
        try:
            with self._net.evaluating(model) as module:
                for batch in torch.split(inputs, PREDICTED):
                    module(batch)
        finally:
            hook.remove()
        return torch.cat(entered)
