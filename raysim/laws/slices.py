"""The laws of slices: which of the server's numbers a narrower model holds."""

import torch

from raysim.data.named import shape_of
from raysim.laws.model import Built, built
from raysim.laws.subject import Broken, NotTried, Subject
from raysim.models.build import initialise
from raysim.models.layout import Layout
from raysim.models.module import Module
from raysim.models.part import ModelPart
from raysim.models.slices import Slices, require_consistent
from raysim.parts.errors import BadValue


def a_narrower_model_holds_a_part_of_it(subject: Subject) -> None:
    """At half of its widths, it is a part of the whole model.

    It holds each of its numbers once, windows that go round cover all units alike, and it computes what the whole one
    does where all that it lacks is zero. A model that does not build its narrower form itself need not have one.
    """
    model = built(subject)
    try:
        slices = _slices(model)
    except BadValue as reason:
        if type(model.part).build_at in (ModelPart.build_at, Module.build_at):
            raise NotTried(f"it has no narrower form, for {reason.text}") from None
        raise Broken(f"build_at: {reason.text}") from None
    for shift in (0, 1, 5):
        index = slices.of(shift)
        for places in (index.w, index.buffers):
            if len(set(places.tolist())) != len(places):
                raise Broken("a narrower model must hold different numbers of the whole one, got some twice")
    for name, cuts in slices.cuts.items():
        for cut in cuts:
            held = torch.cat([cut.places(shift) for shift in range(cut.units)]).bincount()
            if held.tolist() != [cut.kept] * (cut.groups * cut.units * cut.inner):
                raise Broken(f"windows over dimension {cut.dim} of {name} must hold all units alike often, but do not")


def _slices(model: Built) -> Slices:
    pair = [initialise(model.part, shape_of(model.x), model.classes, 0, width) for width in (1.0, 0.5)]
    (whole, layout), (part, narrow) = ((one, Layout(one, channels_last=model.part.channels_last)) for one in pair)
    slices = Slices(whole, layout, part, narrow)
    require_consistent((whole, layout), (part, narrow), slices, model.x)
    return Slices(whole, layout, part, narrow)
