"""The base of the models that a scenario file can name. Importing it, or any model, does not load torch."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING

from raysim.part import Part

if TYPE_CHECKING:
    from torch import nn


class ModelPart(Part):
    """A model: builds a module that takes a batch (B, *shape), float or, of text, int64 tokens.

    A subclass adds its `name`.
    """

    name: str
    personal: tuple[str, ...] = ()
    """Prefixes of the parameters that stay a client's own, such as [head]."""

    @abstractmethod
    def build(self, shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """A fresh module, initialised from torch's global generator; `initialise` seeds that for you.

        shape: one input's, (channels, height, width) of an image, (features,), or (tokens,) of text. The module's
        output is the logits (B, num_classes) or, of text, (B, tokens, num_classes). Raises ValueError where the model
        cannot take such inputs.
        """


def image_shape(model: str, shape: tuple[int, ...]) -> tuple[int, int, int]:
    """The shape, if it is an image's (channels, height, width); else ValueError."""
    if len(shape) != 3:
        raise ValueError(
            f"model {model}: inputs must be images (channels, height, width), got shape {shape!r}; try mlp"
        )
    return shape[0], shape[1], shape[2]


def nearest(word: str, words: Iterable[str]) -> str:
    """The three words spelled most like it, for error messages."""
    return ", ".join(repr(w) for w in get_close_matches(word, sorted(words), n=3, cutoff=0))
