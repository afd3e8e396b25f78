"""The laws of models: their flat vector, their first values, what they predict, and what a narrower one holds."""

from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn

from raysim.data import federate
from raysim.data.meaning import NamedArrays, shape_of
from raysim.laws import runs
from raysim.laws.subject import Broken, Groups, NotTried, Subject
from raysim.local.samples import Loader
from raysim.models.build import initialise
from raysim.models.layout import Layout
from raysim.models.module import Module
from raysim.models.part import ModelPart
from raysim.models.slices import Slices, require_consistent
from raysim.parts.errors import BadValue

SAMPLES = 6  # most samples that are predicted


class Built(NamedTuple):
    """A model with samples that it is for."""

    part: ModelPart
    x: Any  # a tensor, or several by name
    classes: int

    def module(self, seed: int = 0) -> nn.Module:
        """Returns a new module, in training mode."""
        return initialise(self.part, shape_of(self.x), self.classes, seed)


@lru_cache(maxsize=1)
def built(subject: Subject) -> Built:
    """Returns the model with samples of the trial's data."""
    scenario = subject.scenario
    federation = federate(scenario.data, scenario.server_data, scenario.seed, scenario.public)
    loader = Loader(federation.mean, federation.std, torch.device("cpu"))
    x, _ = loader(federation.train, np.arange(min(SAMPLES, len(federation.train))))
    return Built(scenario.model, x, federation.num_classes)


def it_predicts_the_same_each_time(subject: Subject) -> None:
    """In eval mode, it predicts the same for the same inputs each time."""
    model = built(subject)
    module = model.module()
    apart = float((_predict(module, model.x) - _predict(module, model.x)).abs().max())
    if apart:
        text = f"must predict the same each time in eval mode, got values {apart:.3g} apart"
        raise Broken(f"forward: {text}; let dropout follow `training`, draw nothing, and count no calls")


def it_survives_the_flat_vector(subject: Subject) -> None:
    """Its parameters go into one flat vector and back without a change, and it predicts the same."""
    model = built(subject)
    one, other = model.module(), model.module(seed=1)
    frozen = {name: parameter for name, parameter in one.named_parameters() if not parameter.requires_grad}
    other.load_state_dict(frozen, strict=False)  # they are not in the vector: the seed gives them
    part = model.part
    layout = Layout(one, part.personal, channels_last=part.channels_last, norm=part.norm)
    layout.bind(other, layout.flatten(one))
    layout.load_buffers(other, layout.flatten_buffers(one))
    before, after = _predict(one, model.x), _predict(other, model.x)
    if not torch.equal(before, after):
        apart = float((before - after).abs().max())
        text = "must predict the same once another module's vector is put into it"
        raise Broken(f"forward: {text}, got values that are {apart:.3g} apart; keep all in parameters and buffers")


def samples_do_not_see_each_other(subject: Subject) -> None:
    """In eval mode, what it predicts for a sample does not depend on the other samples of the batch."""
    model = built(subject)
    module = model.module()
    together = _predict(module, model.x)
    alone = torch.cat([_predict(module, model.x[place : place + 1]) for place in range(len(model.x))])
    apart = float((together - alone).abs().max())
    if apart > 1e-4 * max(1.0, float(together.abs().max())):
        raise Broken(f"forward: must predict a sample alike alone and in a batch, got values {apart:.3g} apart")


def predicting_changes_nothing(subject: Subject) -> None:
    """Predicting in eval mode changes neither parameters nor buffers."""
    model = built(subject)
    module = model.module()
    module.eval()
    before = _values(module)
    _predict(module, model.x)
    for name, value in _values(module).items():
        if not torch.equal(value, before[name]):
            raise Broken(f"forward: must change nothing in eval mode, but changed {name}")


def gradients_reach_its_parameters(subject: Subject) -> None:
    """Its outputs have finite gradients, of which at least one is not zero."""
    model = built(subject)
    module = model.module()
    outputs = _outputs(module, model.x)
    coefficients = torch.randn(outputs.shape, generator=torch.Generator().manual_seed(0))  # no outputs are its optimum
    loss: Any = (outputs * coefficients).sum()
    loss.backward()
    gradients = {name: p.grad for name, p in module.named_parameters() if p.requires_grad}
    for name, gradient in gradients.items():
        if gradient is not None and not bool(torch.isfinite(gradient).all()):
            raise Broken(f"forward: the gradient of {name} must be finite, got values that are not")
    if not any(gradient is not None and bool(gradient.any()) for gradient in gradients.values()):
        raise Broken("forward: some parameter must have a gradient, got none; do not detach what is trained")


def _values(module: nn.Module) -> dict[str, Tensor]:
    named: dict[str, Any] = module.state_dict()
    return {name: value.clone() for name, value in named.items()}


@torch.no_grad()
def _predict(module: nn.Module, x: Any) -> Tensor:
    module.eval()
    return _outputs(module, x)


def _outputs(module: nn.Module, x: Any) -> Tensor:
    """Returns what a module makes of copies of inputs, of which there may be several by name."""
    found: Tensor = module(**x.map(torch.clone)) if isinstance(x, NamedArrays) else module(x.clone())
    return found


class Narrowed(NamedTuple):
    """A narrower form of a model beside the whole one."""

    layout: Layout  # of the whole one
    slices: Slices

    @classmethod
    def of(cls, subject: Subject, width: float = 0.5) -> Self:
        """Builds both, as each process of a run does. Raises NotTried if the model has no narrower form."""
        model = built(subject)
        try:
            pair = [initialise(model.part, shape_of(model.x), model.classes, 0, one) for one in (1.0, width)]
            whole, part = ((one, Layout(one, channels_last=model.part.channels_last)) for one in pair)
            slices = Slices(*whole, *part)
            require_consistent(whole, part, slices, model.x)
        except BadValue as reason:
            if type(model.part).build_at in (ModelPart.build_at, Module.build_at):
                raise NotTried(f"it has no narrower form: {reason.text}") from None
            raise Broken(f"build_at: {reason.text}") from None
        return cls(whole[1], slices)


def a_narrower_model_computes_a_part_of_it(subject: Subject) -> None:
    """At half of its widths, it computes what the whole model does where all that it lacks is zero.

    A model that does not build its narrower form itself need not have one.
    """
    Narrowed.of(subject)


def a_slice_returns_to_where_it_was(subject: Subject) -> None:
    """What one process cuts out of a vector, another one puts back in its place, each number once."""
    (whole, slices), (_, others) = Narrowed.of(subject), Narrowed.of(subject)
    for shift in (0, 1, 5):
        kept, back = (one.of(shift).w for one in (slices, others))
        w = torch.randn(whole.size, generator=torch.Generator().manual_seed(0))
        found = torch.zeros(whole.size)
        if len(kept) == len(back):
            found.index_add_(0, back, w[kept])
        expected = torch.zeros(whole.size)
        expected[kept] = w[kept]
        if not torch.equal(found, expected):
            raise Broken("build_at: must give the same shapes each time, or what clients send is put elsewhere")


def slices_cover_all_units(subject: Subject) -> None:
    """Slices that move on by a unit at a time hold all units of a layer equally often."""
    whole, slices = Narrowed.of(subject)
    shapes = {entry.name: entry.shape for entry in (*whole.entries, *whole.buffers)}
    for name, cuts in slices.cuts.items():
        for cut in cuts:
            size = shapes[name][cut.dim]
            held = torch.cat([cut.places(shift) for shift in range(cut.units)]).bincount(minlength=size)
            if {*held.tolist()} != {cut.kept}:
                text = f"dimension {cut.dim} of {name}: each of {size} units must be held by {cut.kept} of {cut.units}"
                raise Broken(f"{text} slices, got {held.min()} to {held.max()}; do heads divide the units evenly?")


def what_is_cut_is_not_kept_at_a_smaller_level(subject: Subject) -> None:
    """What is cut at a level is not kept at a smaller one."""
    half, quarter = (Narrowed.of(subject, width).slices.of(0).w for width in (0.5, 0.25))
    if strange := set(quarter.tolist()) - set(half.tolist()):
        text = "must build a quarter of its widths as a part of the half"
        raise Broken(f"build_at: {text}, got {len(strange)} numbers that the half lacks")


LAWS: Groups = (
    *runs.RUNS[:2],
    (it_predicts_the_same_each_time,),
    (
        it_survives_the_flat_vector,
        samples_do_not_see_each_other,
        predicting_changes_nothing,
        gradients_reach_its_parameters,
    ),
    *runs.RUNS[2:],
    (runs.the_same_bits_on_ray,),
    (a_narrower_model_computes_a_part_of_it,),
    (a_slice_returns_to_where_it_was,),
    (slices_cover_all_units, what_is_cut_is_not_kept_at_a_smaller_level),
)
