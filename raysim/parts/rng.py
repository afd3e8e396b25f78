"""Keyed randomness: every draw has a key, and no draw depends on the order of execution.

A key is `(seed, purpose, *ids)` with up to three ids, such as a client and the number of its dispatch. Philox is made
for this (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC 2011): the seed is one word of its key, the
purpose and the number of ids are the other, and the ids are the upper words of its counter. Equal keys give equal
streams in every process, different keys independent ones.
"""

import hashlib
import random
import sys
import threading
from functools import lru_cache
from typing import Any

import numpy as np

SERVER_ID = 2**31  # the server's id, where ids are those of clients
_LOW = 2**32 - 1  # the lower half of 64 bits
_PADDING = ((0, 0, 0), (0, 0), (0,), ())  # zeros that fill a counter up, for 0, 1, 2 and 3 ids


def generator(seed: int, purpose: str, *ids: int) -> np.random.Generator:
    """Returns a new generator for the key. ids: at most three integers in [0, 2**64)."""
    return Stream(seed, purpose)(*ids)


def torch_seed(seed: int, purpose: str, *ids: int) -> int:
    """Returns an integer in [0, 2**63) for `torch.manual_seed`."""
    return int(stream_of(seed, purpose)(*ids).integers(2**63))


class Stream:
    """All generators of one purpose, ten times faster than `generator`, because one object is reused for every key.

    `stream(*ids)` draws what `generator(seed, purpose, *ids)` draws, but may be used only until the next call.
    """

    def __init__(self, seed: int, purpose: str) -> None:
        digest = int.from_bytes(hashlib.blake2b(purpose.encode(), digest_size=8).digest(), "little")
        self._bits = np.random.Philox(key=0)
        self._generator = np.random.Generator(self._bits)
        # The number of ids is part of Philox's key because its counter pads ids with zeros.
        self._places: list[dict[str, Any]] = [{"key": (seed, digest ^ ids)} for ids in range(4)]
        # Numpy reads the words one by one, three times faster from tuples and lists than from arrays.
        start = {**self._bits.state, "buffer": [0] * 4}
        self._starts: list[Any] = [{**start, "state": place} for place in self._places]

    def __call__(self, *ids: int) -> np.random.Generator:
        count = len(ids)
        if count > 3:
            raise ValueError(f"a key holds at most three ids, got {ids!r}")
        self._places[count]["counter"] = (0, *ids, *_PADDING[count])  # Philox counts the blocks drawn in word 0
        self._bits.state = self._starts[count]
        return self._generator

    def below(self, limit: int, *ids: int) -> int:
        """Returns `stream(*ids).integers(limit)` in half of its time. limit: below 2**32."""
        scaled = (self(*ids).bit_generator.random_raw() & _LOW) * limit
        return int(self(*ids).integers(limit)) if scaled & _LOW < limit else scaled >> 32  # Lemire may draw again


class _Kept(threading.local):
    """The streams that one thread has made. They are not shared, for another thread could move them on in the middle
    of a draw."""

    def __init__(self) -> None:
        self.stream = lru_cache(maxsize=64)(Stream)


_kept = _Kept()


def stream_of(seed: int, purpose: str) -> Stream:
    """Returns the Stream of a seed and a purpose, which each thread makes once, for making one is slow."""
    return _kept.stream(seed, purpose)


def seed_globals(seed: int, purpose: str, *ids: int) -> None:
    """Seeds the global generators of Python's `random`, of numpy and, if it is loaded, of torch, from a key.

    The code that runs next may then draw from them, and what it draws depends on nothing that ran before.
    """
    drawn = int(stream_of(seed, f"global {purpose}")(*ids).integers(2**63))
    random.seed(drawn)
    np.random.seed(drawn % 2**32)
    if torch := sys.modules.get("torch"):
        # Not torch.manual_seed: each call keeps a traceback for every kind of device that is not in use yet.
        torch.default_generator.manual_seed(drawn)
        if torch.cuda.is_initialized():
            torch.cuda.manual_seed(drawn)
