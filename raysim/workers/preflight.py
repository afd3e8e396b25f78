"""Tries a model on two samples before a run starts, so that a model that does not fit the data gives one clear
error."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from raysim.data.named import by_name, shape_of, told
from raysim.parts.errors import BadValue
from raysim.parts.rng import seed_globals

if TYPE_CHECKING:
    from raysim.workers.workbench import Workbench

_SAMPLES = 2
_MEASURED = 250


def try_model(bench: Workbench) -> float:
    """Lets the model predict and train on two samples, and embed them if the algorithm needs that. Returns its loss.

    Raises ValueError if the outputs have a wrong shape or type, or if the model cannot embed; an exception of the model
    itself gets a note that describes the inputs.
    """
    federation, net = bench.federation, bench.net
    _require_embedded(bench)
    x, y = bench.loader(federation.train, np.arange(min(_SAMPLES, len(federation.train))))
    first = _Made.by(net.module)
    with torch.random.fork_rng(devices=[]):
        try:
            outputs, *trained = _passes(bench, x, y)
            first.require_same(_Made.by(net.module))
            net.load(bench.start)
            first.require_frozen(_Made.by(net.module))
            _require_alike([outputs, *trained], _passes(bench, x, y))
        except BaseException as error:
            for note in (_given(error, x, y), *federation.notes):  # a guess at what the data mean may be why
                error.add_note(note)
            raise
        if at := bench.scenario.algorithm.embeds(bench.scenario):
            _try_embedding(bench, x, None if at is True else at)
    if federation.loss == "cross_entropy" and bench.scenario.run.loss is None and _are_probabilities(outputs):
        bench.suspected = (
            "model: returns numbers from 0 to 1 that sum to 1 for each input, as after a Softmax, but cross-entropy "
            "takes logits, and has a Softmax of its own; leave the model's out, or it hardly learns",
        )
    net.load(bench.start)
    net.take_solves()
    return float(trained[-1])


def _passes(bench: Workbench, x: Tensor, y: Tensor) -> list[Tensor]:
    """Lets the model predict, predict in training mode, and train. Returns both outputs, and the loss."""
    federation, net = bench.federation, bench.net
    wanted = (x, y, federation.num_classes, federation.loss, bench.scenario.model.wider)
    seed_globals(bench.scenario.seed, "try the model")
    with net.evaluating(bench.start) as module:
        outputs = module(x)
    _require_outputs(outputs, *wanted)
    with net.training(bench.start, len(y)):
        trained = net.module(x)
        _require_outputs(trained, *wanted, when=" in training mode")
        loss, _ = net.gradients(x, y, net.parameters)
    return [outputs, trained.detach(), loss]


def _require_alike(first: list[Tensor], again: list[Tensor]) -> None:
    """Raises ValueError if a model that was given its first values again does not give what it gave before."""
    for before, now in zip(first, again, strict=True):
        if not torch.allclose(before, now, rtol=1e-3, atol=1e-5, equal_nan=True):
            apart = float((before - now).abs().max())
            text = f"must give the same for the same values, inputs and seed, got outputs that are {apart:.3g} apart"
            cure = "keep what changes in its buffers or attributes, which start anew with each client"
            raise BadValue(f"{text}; {cure}, and not in globals, classes or iterators")


def _require_embedded(bench: Workbench) -> None:
    """Raises ValueError unless a model of transformers has a row of its embedding for each token of the data."""
    of_class = getattr(type(bench.net.module), "get_input_embeddings", None)  # a module may have any attribute
    table = of_class(bench.net.module) if of_class else None
    rows = getattr(table, "num_embeddings", 0)
    for split in (bench.federation.train, bench.federation.test) if rows else ():
        inputs = by_name(split.x)
        largest = int(inputs.get("x.input_ids", next(iter(inputs.values()))).max())
        if largest >= rows:
            text = f"must embed each token of the data, which go up to {largest}, got a vocabulary of {rows}"
            raise BadValue(f"{text}; take the model's own tokenizer, or a larger vocab_size")


def _are_probabilities(outputs: Tensor) -> bool:
    """Whether outputs are probabilities of several labels, which logits are by a rare chance only."""
    sums = outputs.sum(-1)
    return outputs.shape[-1] > 1 and bool((outputs >= 0).all()) and bool(torch.allclose(sums, torch.ones_like(sums)))


class _Made(NamedTuple):
    """What a module must not change in a forward pass, for it would be lost."""

    parameters: dict[str, float]  # by name, the sum of one that is frozen, and else 0
    shapes: dict[str, tuple[int, ...]]  # of dense buffers of floats that a state dict holds
    constants: dict[str, Tensor]  # those that are not finite

    @classmethod
    def by(cls, module: nn.Module) -> _Made:
        sums = {name: 0.0 if p.requires_grad else _sum(p) for name, p in module.named_parameters()}
        kept = module.state_dict().keys()
        floats = {n: b for n, b in module.named_buffers() if b.is_floating_point() and b.layout == torch.strided}
        constants = {name: buffer.clone() for name, buffer in floats.items() if not buffer.isfinite().all()}
        return cls(sums, {name: tuple(buffer.shape) for name, buffer in floats.items() if name in kept}, constants)

    def require_same(self, after: _Made) -> None:
        """Raises ValueError if a forward pass made parameters or buffers, or changed what is not averaged."""
        if made := sorted({*after.parameters} - {*self.parameters}):
            cure = "make its layer in __init__, or call the module once on zeros of shape (1, *input_shape) there"
            raise BadValue(f"must have all parameters before its first call, in which it makes {made[0]!r}; {cure}")
        for name, shape in after.shapes.items():
            if (first := self.shapes.get(name)) != shape:
                had = "none" if first is None else f"one of shape {first}"
                text = f"must have its buffers before its first call, had {had} of the name {name!r}, and got {shape}"
                cure = "register it in __init__ in its last shape, for it is averaged over clients, or with persistent="
                raise BadValue(f"{text}; {cure}False, so that it starts anew in each training")
        for name, value in self.constants.items():
            now = after.constants.get(name)
            if now is None or now.shape != value.shape or not bool(((now == value) | (now != now)).all()):
                text = "is taken for a constant, as it is not finite at first, but training changes it"
                raise BadValue(f"buffer {name!r} {text}; give it finite values to start from")

    def require_frozen(self, after: _Made) -> None:
        """Raises ValueError if a frozen parameter is not what it was, once the module has its first values again."""
        if changed := [name for name, value in self.parameters.items() if after.parameters[name] != value]:
            text = f"must leave its frozen parameters as they are, but its forward pass changes {changed[0]!r}"
            raise BadValue(f"{text}; make a buffer of it, with register_buffer, which is averaged over clients")


def _sum(frozen: Tensor) -> float:
    return float(frozen.detach().sum(dtype=torch.float64)) if frozen.is_floating_point() else 0.0


def _require_outputs(
    outputs: object, x: Tensor, y: Tensor, classes: int, loss: str, wider: bool, when: str = ""
) -> None:
    if not isinstance(outputs, Tensor) or not outputs.is_floating_point():
        what = str(outputs.dtype) if isinstance(outputs, Tensor) else type(outputs).__name__
        raise BadValue(f"must return one tensor of floats, got {what}{when}; return the logits alone")
    n, got = len(y), tuple(outputs.shape)
    if wider and got:
        classes = max(classes, got[-1])
    floats = all(one.is_floating_point() for one in by_name(x).values())
    if loss == "cross_entropy":
        # Of text, logits may be given for each token: the last one's are used where there is one label for all of them.
        per_token = not floats and got[:1] == (n,) and len(got) == y.ndim + 2 and got[-1] == classes
        right = got == (*y.shape, classes) or per_token
        places = "".join(f", {size}" for size in y.shape[1:])
        must = f"logits (n{places}, {classes}), one for each of {classes} labels"
        if y.ndim == 3:
            right, must = got == (n, classes, *y.shape[1:]), f"logits (n, {classes}{places}), for each pixel's label"
    elif y.ndim > 1:
        right, must = got == tuple(y.shape), f"numbers (n, {y.shape[1]}), one for each target or label"
    else:
        right, must = outputs.numel() == n, "one number for each input, (n,) or (n, 1)"
    if not right:
        text = f"must return {must}, got shape {got} for n = {n} inputs of shape {told(shape_of(x))}"
        several = floats and len(got) > y.ndim + 1
        text += "; inputs are no text, so pool what it returns for each place" * several
        one = loss == "cross_entropy" and classes == 2 and outputs.numel() == n
        raise BadValue(text + "; for one logit, give y as (n, 1) of 0 and 1, with data.task multi_label" * one)


def try_metrics(bench: Workbench) -> None:
    """Computes own metrics on samples from all over the first split that is evaluated. Raises what a metric raises."""
    split, rows = bench.evaluated[bench.scenario.evaluated_splits[0]]
    some = rows[np.unique(np.linspace(0, len(rows) - 1, _MEASURED, dtype=np.int64))]
    if bench.scenario.run.metrics:
        with bench.net.evaluating(bench.start) as module:
            bench.measure(module, split, some)


def _try_embedding(bench: Workbench, x: Tensor, at: str | None) -> None:
    name = bench.scenario.algorithm.name
    task = bench.task(0, 0, bench.start)
    try:
        embedded = task.embed(bench.start, x, at)
    except (Exception, SystemExit) as error:
        text = "must give embeddings, and what enters its head is not known; name a sub-module that is called with one "
        raise BadValue(f"{text}tensor, as `head` of the model `module`, for {name}: {error}") from error
    if len(embedded) != len(x):
        text = f"must give one embedding for each input, got shape {tuple(embedded.shape)} for {len(x)} inputs"
        raise BadValue(f"{text}, for {name}; name another sub-module")


def _given(error: BaseException, x: Tensor, y: Tensor) -> str:
    inputs = "; ".join(f"{key} {tuple(one.shape)} {one.dtype}" for key, one in by_name(x, "inputs").items())
    given = f"the model was tried on {inputs} with labels {tuple(y.shape)} {y.dtype}"
    if "view size is not compatible" in str(error):
        return f"{given}; images are in channels-last memory: use `flatten` or `reshape` instead of `view`"
    if "does not require grad" in str(error):
        return f"{given}; nothing that is trained leads to its outputs: do not detach them, nor use no_grad"
    if "same dtype" in str(error):
        return f"{given}; parameters become float32: let `forward` cast to the type of these, or not at all"
    return given
