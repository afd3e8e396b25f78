"""What tokens stand for: a vocabulary, and the tokens with a special meaning."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

PADDING, END, MASK, UNKNOWN = range(4)  # the first tokens of raysim's own tokenizers
SPECIAL = ("<padding>", "<end>", "<mask>", "<unknown>")


class Tokens(NamedTuple):
    """A tokenizer that is ready to be used. size: of its vocabulary. A token that it lacks is None."""

    size: int
    encode: Callable[[Sequence[str]], list[np.ndarray]]  # from texts to tokens, int32 (tokens,) each
    decode: Callable[[Sequence[int]], str]
    padding: int = PADDING
    end: int | None = END  # of a text
    mask: int | None = MASK
    special: tuple[int, ...] = tuple(range(len(SPECIAL)))  # tokens that stand for no text
    prefix: tuple[int, ...] = ()  # what stands before a text
    suffix: tuple[int, ...] = ()  # what stands after one that is classified, or whose tokens are masked
    files: Mapping[str, bytes] = {}  # as transformers loads it from a folder; none where that is not known
    named: bytes | None = None  # what decides the tokens of a text, where they take long to make: they are then kept
