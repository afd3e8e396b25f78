"""Random draws have keys."""

from itertools import islice

import numpy as np
import pytest

from raysim.parts.rng import Stream, generator


def test_every_key_has_draws_of_its_own() -> None:
    """That holds for keys that differ only by zeros at their end, too."""
    keys = [(), (0,), (0, 0), (0, 0, 0), (3,), (3, 0), (0, 3), (2**63,)]
    streams = [(seed, purpose) for seed in (0, 1) for purpose in ("delay", "pick")]
    draws = {(*of, *ids): generator(*of, *ids).random() for of in streams for ids in keys}
    assert len(set(draws.values())) == len(draws)


def test_a_stream_draws_what_fresh_generators_draw() -> None:
    stream = Stream(7, "delay")
    for ids in [(1, 2), (), (3,), (1, 2), (2**64 - 1, 0, 5)]:
        assert stream(*ids).random(9).tolist() == generator(7, "delay", *ids).random(9).tolist()
        stream(*ids).integers(3, size=3, dtype=np.uint32)  # leaves half a word behind


def test_a_key_has_three_ids_at_most() -> None:
    for draw in (Stream(0, "delay"), lambda *ids: generator(0, "delay", *ids)):
        with pytest.raises(ValueError, match=r"at most three ids, got \(1, 2, 3, 4\)"):
            draw(1, 2, 3, 4)


@pytest.mark.parametrize("limit", [1, 2, 7, 130_000, 2**31 + 5, 2**32 - 1])
def test_integers_below_a_limit_are_those_of_numpy(limit: int) -> None:
    stream = Stream(3, "pick")
    first = 2**33 - 1000
    assert [*islice(stream.below(limit, first), 5000)] == [
        int(stream(first + number).integers(limit)) for number in range(5000)
    ]
