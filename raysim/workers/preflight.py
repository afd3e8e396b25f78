"""Tries a model on two samples before a run starts, so that a model that does not fit the data gives one clear
error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from traceback import walk_tb

import numpy as np
import torch
from torch import Tensor, nn

from actors.fault import UserError, exhausted, frames_of
from raysim.data.meaning import NamedArrays, by_name, shape_of, shape_text
from raysim.local.gradients import PerSample
from raysim.local.net import Net
from raysim.parts.errors import BadValue, located
from raysim.parts.rng import seed_globals
from raysim.terms import ModelKey, Vectors
from raysim.uplink.channel import Transformed, channels
from raysim.uplink.uplink import Size, Uplink
from raysim.workers.evaluation import EVALUATION_BATCH
from raysim.workers.variants import Variant
from raysim.workers.workbench import Workbench

_MEASURED = 250


def try_all(bench: Workbench) -> None:
    """Tries the model and the metrics of a scenario. Raises BadInput, with their key, if one of them does not work."""
    with located("model"):
        try_model(bench)
    try_architectures(bench)
    with located("run.metrics"):
        try_metrics(bench)
    local = bench.scenario.local
    settings = (local, *(group.settings(local) for group in bench.scenario.clients))
    if any(isinstance(gradient, PerSample) for one in settings for gradient in one.gradients):
        with located("local"):
            try_single_samples(bench)


def try_architectures(bench: Workbench) -> None:
    """Tries the models of groups with other architectures, and whether what clients send of them fits together."""
    scenario, shapes = bench.scenario, dict[ModelKey, dict[str, int]]()
    keys: tuple[ModelKey, ...] = (1.0, *scenario.models)
    for key in keys if scenario.models else ():
        at = f"clients.{scenario.place_of(key)}.model" if isinstance(key, str) else "model"
        with located(at):
            if isinstance(key, str):
                try_model(bench, key)
            shapes[key] = _sizes(bench, bench.variant(key))
            for what, size in shapes[key].items():
                if size != (other := shapes[1.0][what]):
                    text = f"must give {what} of {other} numbers, as the scenario's `model` does, for "
                    raise BadValue(f"{text}{scenario.algorithm.name}, got {size}; change a size in one of them")


def _sizes(bench: Workbench, variant: Variant) -> dict[str, int]:
    """Returns how many numbers there are in what models must have in common: logits, and embeddings that are shared."""
    scenario, (x, _) = bench.scenario, bench.loader(bench.federation.train, np.arange(1))
    task = bench.task(0, 0, variant.start, variant=variant)
    found = {"logits": task.predict(variant.start, x).shape[-1]}
    if scenario.algorithm.embeds(scenario) and not scenario.apart:
        found["embeddings"] = task.embed(variant.start, x).numel()
    return found


def try_model(bench: Workbench, key: ModelKey = 1.0) -> float:
    """Lets the model of a key predict and train on two samples, and embed them if the algorithm needs that. Returns its
    loss.

    Raises ValueError if the outputs have a wrong shape or type, or if the model cannot embed; an exception of the model
    itself gets a note that describes the inputs.
    """
    federation, variant = bench.federation, bench.variant(key)
    net, start = variant.net, variant.start
    _require_embedded(bench, net)
    few = 3 if federation.num_classes == 2 else 2  # another number than that of labels, so that their places show
    x, y = bench.loader(federation.train, np.arange(min(few, len(federation.train))))
    wider = (bench.scenario.models[key] if isinstance(key, str) else bench.scenario.model).wider
    check = partial(_require_outputs, classes=federation.num_classes, loss=federation.loss, wider=wider)
    first = _shapes(net.module)
    with torch.random.fork_rng(devices=[]):
        try:
            outputs, *trained = _passes(bench, variant, x, y, check)
            _require_same(first, _shapes(net.module))
            net.load(start)
            _require_alike([outputs, *trained], _passes(bench, variant, x, y, check))
            _try_single(bench, variant, x[:1], y[:1], check)
        except BaseException as error:
            if not isinstance(error, Exception) or isinstance(error, UserError) or frames_of(error) or exhausted(error):
                error.add_note(_given(x, y))
                raise
            said = " - ".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])])
            text = f"must predict and train on two samples, got {said}{_inside(error, net.module)}; {_given(x, y)}"
            raise BadValue(text) from error
        if at := bench.scenario.algorithm.embeds(bench.scenario):
            _try_embedding(bench, variant, x, None if at is True else at)
    net.load(start)
    net.take_solves()
    return float(trained[-1])


def _shapes(module: nn.Module) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of the buffers of floats that a state dict holds, and () for each parameter."""
    kept = module.state_dict().keys()
    floats = {name: one for name, one in module.named_buffers() if name in kept and one.is_floating_point()}
    return {**{name: () for name, _ in module.named_parameters()}, **{n: tuple(one.shape) for n, one in floats.items()}}


def _require_same(first: dict[str, tuple[int, ...]], after: dict[str, tuple[int, ...]]) -> None:
    """Raises BadValue if a forward pass made parameters or buffers, or gave a buffer another shape."""
    if made := sorted(name for name, shape in after.items() if first.get(name) != shape):
        text = f"must have all parameters and buffers before its first call, which makes or reshapes {made[0]!r}"
        raise BadValue(f"{text}; make it in __init__, or register the buffer with persistent=False")


def try_single_samples(bench: Workbench) -> None:
    """Lets the model take gradients of single samples. Raises BadValue if torch.func cannot."""
    x, y = bench.loader(bench.federation.train, np.arange(min(2, len(bench.federation.train))))
    with torch.random.fork_rng(devices=[]), bench.net.training(bench.start):
        try:
            bench.net.gradient_of_each(x, y, bench.net.parameters)
        except Exception as error:
            why = str(error).partition("\n")[0]
            text = f"must not have per_sample, because torch.func cannot follow the model or its loss: {why}"
            raise BadValue(f"{text}; leave it out, or take another model", "gradients") from error
    bench.net.take_solves()


def _passes(bench: Workbench, variant: Variant, x: Tensor, y: Tensor, check: Callable[..., None]) -> list[Tensor]:
    """Lets the model predict, predict in training mode, and train. Returns both outputs, and the loss.

    check: raises BadValue for wrong outputs.
    """
    net, start = variant.net, variant.start
    seed_globals(bench.scenario.seed, "try the model")
    with net.evaluating(start) as module:
        outputs = module(x)
    check(outputs, x, y)
    with net.training(start):
        trained = net.module(x)
        check(trained, x, y, when=" in training mode")
        loss, _ = net.gradients(x, y, net.parameters)
    return [one.detach().as_subclass(Tensor) for one in (outputs, trained, loss)]


def _try_single(bench: Workbench, variant: Variant, x: Tensor, y: Tensor, check: Callable[..., None]) -> None:
    """Lets the model train and predict on one sample, where some mini-batch, or the last piece of a split, has no more.

    x, y: the sample, as a batch. check: as above. An exception of the model gets a note that says so.
    """
    federation, scenario = bench.federation, bench.scenario
    if scenario.clients:
        trained = any(bench.groups.local(c).smallest_batch(int(n)) == 1 for c, n in enumerate(federation.samples) if n)
    else:
        trained = any(scenario.local.smallest_batch(int(n)) == 1 for n in np.unique(federation.samples) if n)
    splits = (bench.evaluator.splits[split] for split in scenario.evaluated_splits)
    tested = [*federation.held_out.sizes, *(len(rows) for _, rows in splits)]
    net, start = variant.net, variant.start
    try:
        if trained:
            with net.training(start):
                check(net.module(x), x, y, when=" in training mode")
        if any(size % EVALUATION_BATCH == 1 for size in tested):
            with net.evaluating(start) as module:
                check(module(x), x, y)
    except Exception as error:
        cure = "accept one sample, or set local.drop_last, or a local.batch_size that leaves no mini-batch of one"
        error.add_note(f"some mini-batches hold one sample only; {cure}" if trained else "it is the last of some split")
        raise


def _require_alike(first: list[Tensor], again: list[Tensor]) -> None:
    """Raises BadValue if a model that was given its first values again does not give what it gave before."""
    for before, now in zip(first, again, strict=True):
        if not torch.allclose(before, now, rtol=1e-3, atol=1e-5, equal_nan=True):
            apart = float((before - now).abs().max())
            text = f"must give the same for the same values, inputs and seed, got outputs that are {apart:.3g} apart"
            cure = "keep what changes in its buffers or attributes, which start anew with each client"
            raise BadValue(f"{text}; {cure}, and not in globals, classes or iterators")


def _require_embedded(bench: Workbench, net: Net) -> None:
    """Raises ValueError unless a model of transformers has a row of its embedding for each token of the data."""
    of_class = getattr(type(net.module), "get_input_embeddings", None)  # a module may have any attribute
    table = of_class(net.module) if of_class else None
    rows = getattr(table, "num_embeddings", 0)
    for split in (bench.federation.train, bench.federation.test) if rows else ():
        inputs = by_name(split.x)
        largest = int(inputs.get("x.input_ids", next(iter(inputs.values()))).max())
        if largest >= rows:
            text = f"must embed each token of the data, which go up to {largest}, got a vocabulary of {rows}"
            raise BadValue(f"{text}; take the model's own tokenizer, or a larger vocab_size")


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
    padded = isinstance(x, NamedArrays) and y.ndim == 1  # so the last token of a text may be none
    if loss == "cross_entropy":
        # Of text, logits may be given for each token: the last one's are used where there is one label for all of them.
        per_token = not (floats or padded) and got[:1] == (n,) and len(got) == y.ndim + 2 and got[-1] == classes
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
        text = f"must return {must}, got shape {got} for n = {n} inputs of shape {shape_text(shape_of(x))}"
        text += "; some batches hold one sample, so keep the axis of samples, which `squeeze()` drops" * (n == 1)
        several = (floats or padded) and len(got) > y.ndim + 1
        why = "inputs are not text" if floats else "the last place may be padding"
        text += f"; {why}, so pool what it returns for each place" * several
        one = loss == "cross_entropy" and classes == 2 and outputs.numel() == n
        cure = "; return two logits, or, for one, give y as (n, 1) of 0 and 1, with data.task multi_label"
        wide = loss == "cross_entropy" and y.ndim == 1 and len(got) == 2 and not one
        raise BadValue(text + cure * one + f"; make its last layer {classes} wide" * wide)


def try_metrics(bench: Workbench) -> None:
    """Computes own metrics on samples from all over the first split that is evaluated. Raises what a metric raises."""
    split, rows = bench.evaluator.splits[bench.scenario.evaluated_splits[0]]
    some = rows[np.unique(np.linspace(0, len(rows) - 1, _MEASURED, dtype=np.int64))]
    if bench.scenario.run.metrics:
        with bench.net.evaluating(bench.start) as module:
            bench.evaluator.measure(module, split, some)


def transformed(link: str, transforms: Sequence[Uplink], vectors: Vectors) -> list[Transformed]:
    """Returns what the transforms of a link make of vectors of ones. vectors: the shapes of the layers of those that
    travel."""
    draw = lambda place: torch.Generator().manual_seed(place)  # noqa: E731
    found = channels(link, transforms, vectors)
    return [one(torch.ones(length), {}, draw) for one in found if (length := Size.dense(one.shapes).values)]


def _try_embedding(bench: Workbench, variant: Variant, x: Tensor, at: str | None) -> None:
    name = bench.scenario.algorithm.name
    task = bench.task(0, 0, variant.start, variant=variant)
    try:
        embedded = task.embed(variant.start, x, at)
    except (Exception, SystemExit) as error:
        text = "must give embeddings, and what enters its head is not known; name a sub-module that is called with one "
        raise BadValue(f"{text}tensor, as `head` of the model `module`, for {name}: {error}") from error
    if len(embedded) != len(x):
        text = f"must give one embedding for each input, got shape {tuple(embedded.shape)} for {len(x)} inputs"
        raise BadValue(f"{text}, for {name}; name another sub-module")


def _inside(error: BaseException, module: nn.Module) -> str:
    """Says in which sub-module an error arose."""
    names = {id(one): name for name, one in module.named_modules() if name}
    steps = (names.get(id(frame.f_locals.get("self"))) for frame, _ in walk_tb(error.__traceback__))
    found = [name for name in steps if name]
    return f" in its sub-module {found[-1]!r}" if found else ""


def _given(x: Tensor, y: Tensor) -> str:
    inputs = "; ".join(f"{key} {tuple(one.shape)} {one.dtype}" for key, one in by_name(x, "inputs").items())
    kind = "parameters become float32, and images are in channels-last memory"
    return f"the model was tried on {inputs} with labels {tuple(y.shape)} {y.dtype}; {kind}"
