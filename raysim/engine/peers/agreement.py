"""How well a graph that changes has mixed so far: the second eigenvalue of the mean W, and the mass of a push-sum."""

from collections import Counter
from collections.abc import Container

import numpy as np

from raysim.world.peers_timeline import Exchanged, Joined, Mixed

LARGEST = 256  # peers for which eigenvalues are computed: of more, they take seconds


class Agreement:
    """What peers have heard so far. It follows from the timeline alone."""

    def __init__(self, peers: int, step: float, *, pushes: bool, later: Container[int] = (), joins: str = "") -> None:
        """step: gamma. pushes: whether peers mix by shares of what they send, not by weights of what they hear. later:
        peers that are not there at first, and start as `world.join`, joins, says."""
        self._joins = joins
        self._step, self._pushes = step, pushes
        self._sum = np.zeros((peers, peers) if peers <= LARGEST else (0, 0))  # of W, over each peer's mixes
        self._mixes = np.zeros(peers, dtype=np.int64)
        self._receivers: dict[int, tuple[int, ...]] = {}  # to whom each peer sent first
        self._changed = False  # whether a peer has sent to others since
        self._mass = [float(peer not in later) for peer in range(peers)]  # the weight of each peer in a push-sum
        self._sent: dict[tuple[int, int], float] = {}  # by peer and number of a message: what its shares are taken of
        self._left = Counter[tuple[int, int]]()  # how many will yet hear it

    def add(self, exchanged: Exchanged) -> None:
        """Adds the mixes of a round."""
        for mix in exchanged.changes:
            if isinstance(mix, Joined):
                self._mass[mix.peer] = float(self._joins != "empty")
                continue
            peer, heard = mix.peer, [(one.peer, one.share if self._pushes else one.weight) for one in mix.inbox]
            given = 1 - mix.kept if self._pushes else sum(weight for _, weight in heard)
            if self._pushes:
                self._push(mix, 1 - self._step * given)
            if len(self._sum):
                self._sum[peer, peer] += 1 - self._step * given
                for source, weight in heard:
                    self._sum[peer, source] += self._step * weight
            self._mixes[peer] += 1
            receivers = tuple(message.target for message in mix.sent)
            self._changed = self._changed or self._receivers.setdefault(peer, receivers) != receivers

    def _push(self, mix: Mixed, kept: float) -> None:
        """Follows the weights of a push-sum through a mix. kept: what the peer keeps of its own."""
        own = self._mass[mix.peer]
        self._sent[mix.peer, mix.number] = own
        self._left[mix.peer, mix.number] += sum(message.arrives is not None for message in mix.sent)
        after = kept * own
        for one in mix.inbox:
            key = (one.peer, one.number)
            # Within a round, a neighbour that mixes later still has what it sent.
            after += self._step * one.share * self._sent.get(key, self._mass[one.peer])
            self._left[key] -= 1
        self._mass[mix.peer] = after
        for key in [(mix.peer, mix.number), *((one.peer, one.number) for one in mix.inbox)]:
            if key in self._sent and self._left[key] == 0:
                del self._sent[key], self._left[key]

    @property
    def measured(self) -> dict[str, float]:
        """The numbers to show with an evaluation; none as long as the graph is the same."""
        if not self._changed:
            return {}
        found = {"mass": sum(self._mass)} if self._pushes else {}
        if len(self._sum):
            counts = np.maximum(self._mixes, 1)[:, None]
            mean = self._sum / counts + np.diag((self._mixes == 0).astype(float))
            found["second_eigenvalue"] = float(np.sort(np.abs(np.linalg.eigvals(mean)))[-2])
        return found
