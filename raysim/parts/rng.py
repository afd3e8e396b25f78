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
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

SERVER_ID = 2**31  # the server's id, where ids are those of clients
_LOW = 2**32 - 1  # the lower half of 64 bits
_FIRST = (0,)  # Philox counts the blocks drawn in the first word of a counter
_ZEROS = ((0, 0, 0), (0, 0), (0,), ())  # which fill it up, for 0, 1, 2 and 3 ids
_BLOCK = 4096  # ids, whose words fit the fastest caches
# Philox's factors, and what is added to its keys after each round.
_FACTORS, _STEPS = (0xD2E7470EE14C6C93, 0xCA5A826395121157), (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)


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
        # Numpy reads the words one by one, three times faster from tuples and lists than from arrays.
        start = {**self._bits.state, "buffer": [0] * 4}
        places: list[dict[str, Any]] = [{"key": (seed, digest ^ ids)} for ids in range(4)]
        self._of: Any = [(place, {**start, "state": place}, zeros) for place, zeros in zip(places, _ZEROS, strict=True)]

    def __call__(self, *ids: int) -> np.random.Generator:
        if len(ids) > 3:
            raise ValueError(f"a key holds at most three ids, got {ids!r}")
        place, start, zeros = self._of[len(ids)]
        place["counter"] = _FIRST + ids + zeros
        self._bits.state = start
        return self._generator

    def below(self, limit: int, first: int) -> Iterator[int]:
        """Yields `stream(id).integers(limit)` for the ids first, first + 1 and so on without end, in a tenth of the
        time, because they are drawn in blocks. limit: below 2**32."""
        while True:
            scaled = (self._words(np.arange(first, first + _BLOCK, dtype=np.uint64)) & _LOW) * limit
            found = (scaled >> 32).tolist()
            for place in np.flatnonzero((scaled & _LOW) < limit).tolist():  # where Lemire may draw again
                found[place] = int(self(first + place).integers(limit))
            yield from found
            first += _BLOCK

    def _words(self, ids: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Returns the first word that each of these ids draws, as Philox computes it in ten rounds."""
        none = np.zeros(1, np.uint64)
        words, keys = [none + 1, ids, none, none], [*self._of[1][0]["key"]]  # a counter and the key
        for _ in range(10):
            (high, low), (other_high, other_low) = map(_product, _FACTORS, words[::2])
            words = [other_high ^ words[1] ^ keys[0], other_low, high ^ words[3] ^ keys[1], low]
            keys = [(key + step) % 2**64 for key, step in zip(keys, _STEPS, strict=True)]
        return words[0]


def _product(factor: int, words: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Returns the upper and the lower 64 bits of products of 64 bits."""
    (low, high), upper, lower = (factor & _LOW, factor >> 32), words >> 32, words & _LOW
    middle = high * lower + (low * lower >> 32)
    return high * upper + (middle >> 32) + (low * upper + (middle & _LOW) >> 32), factor * words


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
