"""Broyden's method: a quasi-Newton method for roots, here of f(z) = g(z) - z, whose roots are the fixed points of g.

Broyden, A class of methods for solving nonlinear simultaneous equations, Mathematics of Computation 19, 1965, the
first of its methods, with full steps.
"""

from torch import Tensor


class InverseJacobian:
    """An estimate H of the inverse of f's Jacobian for each sample of a batch: -1 at first, then -1 + sum_k u_k v_k^T.

    start: the first points of a solve, (B, D). most: how many updates there will be.
    """

    def __init__(self, start: Tensor, most: int) -> None:
        batch, size = start.shape
        self.u, self.v = start.new_empty(2, batch, most, size)
        self.updates = 0
        self._last: tuple[Tensor, Tensor] | None = None  # the last points, and their f

    def next(self, point: Tensor, image: Tensor) -> Tensor:
        """Returns the next points, z - H f(z), (B, D). z: the last points; their images g(z) are given."""
        value = image - point
        if self._last is not None and self.updates < self.u.shape[1]:
            self._update(point - self._last[0], value - self._last[1])
        self._last = point, value
        return point - self._times(value)

    def _update(self, moved: Tensor, changed: Tensor) -> None:
        """Changes H as little as possible so that H changed = moved. moved, changed: the last differences of the
        points and of f."""
        right = self._transposed_times(moved)
        left = (moved - self._times(changed)) / (right * changed).sum(1, keepdim=True)
        # A sample that has converged does not move: 0 / 0.
        self.u[:, self.updates], self.v[:, self.updates] = left.nan_to_num(0, 0, 0), right.nan_to_num(0, 0, 0)
        self.updates += 1

    def _times(self, x: Tensor) -> Tensor:
        return _low_rank(self.u[:, : self.updates], self.v[:, : self.updates], x)

    def _transposed_times(self, x: Tensor) -> Tensor:
        return _low_rank(self.v[:, : self.updates], self.u[:, : self.updates], x)


def _low_rank(u: Tensor, v: Tensor, x: Tensor) -> Tensor:
    """Returns (-1 + sum_k u_k v_k^T) x, (B, D). u, v: (B, k, D)."""
    weights = (v * x[:, None]).sum(2, keepdim=True)
    product: Tensor = (u * weights).sum(1) - x
    return product
