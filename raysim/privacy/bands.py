"""Coefficients of `release: matrix` with `strategy: blt`, found beforehand."""

from collections.abc import Sequence

# By separation: theta and omega that make the largest error of a prefix sum, times what a client can move it by, least
# for ten uses so many steps apart. Found by a Nelder-Mead search.
_FOUND: dict[int, tuple[tuple[float, float], tuple[float, float]]] = {
    5: ((0.75226, 0.752257), (0.16294, 0.526498)),
    10: ((0.87047, 0.765767), (0.594742, 0.0)),
    20: ((0.932548, 0.0), (0.471831, 0.067176)),
    50: ((0.972453, 0.428428), (0.318455, 0.200069)),
    100: ((0.986072, 0.623144), (0.231319, 0.272538)),
    200: ((0.992904, 0.743581), (0.168177, 0.313711)),
}


def blt_for(separation: int) -> tuple[Sequence[float], Sequence[float]]:
    """Returns theta and omega for a least number of steps from one use to the next: those of the largest separation in
    the table that is not above it, or of the smallest one there."""
    known = [key for key in _FOUND if key <= separation]
    return _FOUND[max(known, default=min(_FOUND))]
