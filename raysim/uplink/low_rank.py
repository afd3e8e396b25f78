"""A transform that sends each layer as two thin factors."""

import math
from typing import Literal

from raysim.parts.lazy import torch
from raysim.parts.part import Count
from raysim.terms import Record, Tensor
from raysim.uplink.memory import Remembering
from raysim.uplink.uplink import Decoded, Size, UplinkPoint

FACTORS = "factors"  # the entry that is kept: Q of each layer, one after another


class LowRankFactors(Remembering):
    """Sends P and Q of each layer M (outputs, rest), which is decoded as P Q^T (PowerSGD, Vogels et al. 2019).

    P is M Q, made orthonormal, and Q is then M^T P. Vectors, and layers of which P and Q hold more than half as many
    numbers, travel as they are. In a data centre, PowerSGD averages P over workers before Q is made; here each client
    has its own factors, as one message up allows, and it sends them from the first update on.
    """

    name: str = "low_rank"
    rank: Count = 2
    """Columns of P and Q."""
    iterations: Count = 1
    """How often P and Q are made anew for an update."""
    warm: bool = True
    """Whether a client begins with the Q of its last update; else with one that is drawn."""
    memory: Literal["none", "ef14", "ef21", "shadow"] = "ef14"
    """What happens to the error, as in top_k."""

    @property
    def keeps(self) -> bool:
        return self.warm or self.remembers

    def send(self, vector: Tensor, kept: Record, at: UplinkPoint) -> Decoded:
        cut = [self._factors(shape) for shape in at.size.shapes]
        if not any(cut) or not bool(vector.isfinite().all()):
            return Decoded(vector, kept)
        start = kept.get(FACTORS)
        if start is None:
            rests = [math.prod(shape[1:]) for shape, small in zip(at.size.shapes, cut, strict=True) if small]
            start = torch.randn(sum(rests) * self.rank, generator=at.draw).to(vector.device)
        decoded, factors, used = [], [], 0
        for piece, shape, small in zip(vector.split_with_sizes(at.layers), at.size.shapes, cut, strict=True):
            if small:
                matrix = piece.view(shape[0], -1)
                q = start[used : used + matrix.shape[1] * self.rank].view(-1, self.rank)
                p, new = self.factored(matrix, q)
                used, piece = used + q.numel(), (p @ new.T).flatten()
                factors.append(torch.where(new.any(), new, q).flatten())  # from 0, it might never get away
            decoded.append(piece)
        return Decoded(torch.cat(decoded), {FACTORS: torch.cat(factors)} if self.warm else {})

    def factored(self, matrix: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
        """Returns P (outputs, rank), whose columns are orthonormal, and Q (rest, rank) of a layer."""
        for _ in range(self.iterations):
            p, r = torch.linalg.qr(matrix @ q)
            p = p * torch.where(r.diagonal() < 0, -1.0, 1.0)
            q = matrix.T @ p
        return p, q

    def size(self, before: Size) -> Size:
        sent = [self._factors(shape) or math.prod(shape) for shape in before.shapes]
        return before if sum(sent) == before.length else Size(before.shapes, sum(sent))

    def stretch(self, length: int) -> float | None:
        return 1.0

    def _factors(self, shape: tuple[int, ...]) -> int:
        """Returns how many numbers the factors of a layer hold; 0 if it travels as it is."""
        outputs, rest = shape[0] if shape else 1, math.prod(shape[1:])
        numbers = self.rank * (outputs + rest)
        return numbers if len(shape) > 1 and 2 * numbers <= outputs * rest else 0
