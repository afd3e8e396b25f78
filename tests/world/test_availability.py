"""When clients are there."""

import math

from raysim.world.availability import RandomAvailability


def test_slots_begin_at_their_multiples() -> None:
    """That holds where the multiples are no exact floating-point numbers, too, so that time always goes on."""
    for slot in (0.1, 1 / 3, 0.7, 1.0, 3.3e5):
        availability, time = RandomAvailability(slot=slot, probability=0.5), 0.0
        for number in range(1, 2000):
            later = availability.next_change(time)
            assert later == number * slot
            assert (availability.number(later), availability.number(math.nextafter(later, 0))) == (number, number - 1)
            time = later
