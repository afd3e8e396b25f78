"""The privacy of one Gaussian mechanism in closed form (Balle, Wang, Improving the Gaussian mechanism, 2018).

What noise without sampling releases, however often, is one Gaussian mechanism (Dong, Roth, Su, Gaussian differential
privacy, 2022): its mu is what a client can move the result by, in standard deviations of the noise.
"""

import math
from collections.abc import Callable
from functools import lru_cache

_STEPS = 200  # of a bisection, which halves a range each time and ends where doubles end


def delta_of(mu: float, epsilon: float) -> float:
    """Returns the delta of a Gaussian mechanism for an epsilon: Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)."""
    if mu == 0:
        return 0.0
    near, far = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    return math.exp(_log_cdf(near)) - math.exp(epsilon + _log_cdf(far))


@lru_cache(4096)
def epsilon_of(mu: float, delta: float, curve: Callable[[float, float], float] = delta_of) -> float:
    """Returns the least epsilon of a mechanism for a delta; infinite without noise, where mu is infinite.

    curve: returns its delta for mu and an epsilon.
    """
    if not math.isfinite(mu):
        return math.inf
    low, high = 0.0, 1.0
    if curve(mu, low) <= delta:
        return low
    while curve(mu, high) > delta:
        low, high = high, 2 * high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if curve(mu, middle) > delta else (low, middle)
    return high


def mu_of(epsilon: float, delta: float, curve: Callable[[float, float], float] = delta_of) -> float:
    """Returns the largest mu of a mechanism that keeps to an epsilon and a delta. curve: as for `epsilon_of`."""
    low, high = 0.0, 1.0
    while curve(high, epsilon) <= delta:
        low, high = high, 2 * high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if curve(middle, epsilon) <= delta else (low, middle)
    return low


def _log_cdf(x: float) -> float:
    """Returns the logarithm of the standard normal distribution function, also far out where that itself is 0."""
    if x > -30:
        return math.log(math.erfc(-x / math.sqrt(2)) / 2)
    square = x * x  # Mills' ratio: an asymptotic series, whose next term is below 1e-9 here
    return (
        -square / 2 - math.log(-x * math.sqrt(2 * math.pi)) + math.log1p(-1 / square + 3 / square**2 - 15 / square**3)
    )
