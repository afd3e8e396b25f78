"""What noise guarantees, in closed form and from timelines: values by hand, and of other accountants."""

import math

import pytest
from pytest import approx

from raysim.privacy.account import of_updates
from raysim.privacy.exposure import Exposure, delta_of, epsilon_of, mu_of, shares_of
from raysim.terms import Arrival

DELTA = 1e-5
CLASSICAL = math.sqrt(2 * math.log(1.25 / DELTA))  # which is right below epsilon 1


def exposed(steps: list[dict[int, float]], exposure: Exposure | None = None) -> Exposure:
    found = exposure or Exposure()
    for shares in steps:
        found.step(shares)
    return found


@pytest.mark.parametrize(
    ("uses", "multiplier", "delta", "epsilon"),
    [
        (25, 4, DELTA, 5.679587),
        (3, 2, DELTA, 3.708635),
        (1, 1, DELTA, 4.377178),
        (50, 5, DELTA, 6.572970),  # S3 of a table in which accountants are compared
        (200, 2, 1e-6, 57.848549),  # S2 there, without amplification
        (4, CLASSICAL, DELTA, 1.610316),  # noise of clients for epsilon 1, if the bound is taken for twice the bound
        (4, CLASSICAL / 10, DELTA, 25.442611),  # and for epsilon 10
        (20, 4, DELTA, 4.983306),  # of the quickstart, all uses as if their weights were the largest
        (496, 4, DELTA, 38.505670),  # and each step as if it used everybody
    ],
)
def test_uses_of_one_client(uses: float, multiplier: float, delta: float, epsilon: float) -> None:
    assert epsilon_of(math.sqrt(uses) / multiplier, delta) == approx(epsilon, abs=1e-6)


def test_next_to_no_noise_gives_an_infinite_epsilon() -> None:
    assert epsilon_of(1e200, DELTA) == math.inf


def test_two_uses_in_one_step_add_before_they_are_squared() -> None:
    arrivals = [Arrival(3, serial, 0, 0, 0.0, 10) for serial in (0, 1)]
    together = exposed([shares_of(arrivals, [0.1, 0.1])])
    apart = exposed([shares_of([one], [0.1]) for one in arrivals])
    assert [together.uses[3], apart.uses[3]] == [1, 2]
    assert epsilon_of(math.sqrt(together.largest) / 4, DELTA) == approx(1.993091, abs=1e-6)
    assert epsilon_of(math.sqrt(apart.largest) / 4, DELTA) == approx(1.356467, abs=1e-6)


def test_uses_of_several_weights() -> None:
    squares = exposed([{0: 1.0}, {0: 2.0}, {0: 1.0}, {1: 1.0}, {0: 1.0}]).squares[0]
    assert 4 / math.sqrt(squares) == approx(1.511858, abs=1e-6)
    assert epsilon_of(math.sqrt(squares) / 4, DELTA) == approx(2.728984, abs=1e-6)
    stale = exposed([{0: 1.0, 1: 1.0}, {0: 0.707107, 1: 1.0}, {0: 0.5, 1: 1.0}])
    assert 1 / math.sqrt(stale.squares[0]) == approx(0.755929, abs=1e-6)


def test_shares_are_relative_to_the_largest_weight_of_a_step() -> None:
    arrivals = [Arrival(client, client, 0, 0, 0.0, 10) for client in range(3)]
    assert shares_of(arrivals, [0.1, -0.2, 0.05]) == {0: 0.5, 1: 1.0, 2: 0.25}
    assert shares_of(arrivals, [0.0, 0.0, 0.0]) == {}


@pytest.mark.parametrize(("epsilon", "std"), [(1, 3.730632), (5, 0.891868)])
def test_the_multiplier_of_an_epsilon(epsilon: float, std: float) -> None:
    assert 1 / mu_of(epsilon, DELTA) == approx(std, abs=1e-6)
    assert epsilon_of(mu_of(epsilon, DELTA), DELTA) == approx(epsilon)


@pytest.mark.parametrize(("multiplier", "count_std", "of_sum"), [(1, 5, 1.005038), (0.5, 1, 0.516398)])
def test_noise_where_the_clipped_are_counted_too(multiplier: float, count_std: float, of_sum: float) -> None:
    assert of_updates(multiplier, count_std) == approx(of_sum, abs=1e-6)


def test_a_joint_bound_of_update_and_bit_is_the_same_noise() -> None:
    """pfl-research clips both together, to C_all = C / sqrt(1 - r^2) with r = z / s, where s is of a bit of +-1."""
    z, s = 1.0, 5.0
    joint = of_updates(z, s / 2)
    assert joint == approx(1.020621, abs=1e-6) == 1 / math.sqrt(1 - (z / s) ** 2)
    assert z * joint / s == approx(0.204124, abs=1e-6)  # what the bit is multiplied by


def test_the_ends_of_the_scale() -> None:
    assert epsilon_of(0.0, DELTA) == 0 and epsilon_of(math.inf, DELTA) == math.inf
    assert epsilon_of(60.0, DELTA) == approx(60**2 / 2 + 4.264 * 60, abs=2)  # e^epsilon is no double any more
    assert delta_of(1.0, 0.0) == approx(math.erf(0.5 / math.sqrt(2)))
