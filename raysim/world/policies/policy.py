"""How clients are picked among those that are idle and available."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from raysim.parts.part import Part
from raysim.world.policies.candidates import Candidates


class Policy(Part):
    """How clients are picked among those that are idle and available. A subclass adds its `name`."""

    name: str

    needs_losses: ClassVar[bool] = False
    """Whether it needs to know what clients reported. The timeline then waits, before it picks, for the training of
    those that have arrived."""

    @abstractmethod
    def pick(self, candidates: Candidates, wanted: int, generator: np.random.Generator) -> Sequence[int]:
        """Returns some of the idle clients, at most as many as are wanted, none of them twice.

        They are dispatched in this order, in which updates that arrive at one time count: a drawn one favours nobody.

        candidates: what is known of all clients; its arrays are not to be changed. wanted: at least 1; there may be
        fewer idle clients. generator: draws of this dispatch.
        """

    @property
    def needs_labels(self) -> bool:
        """Whether it needs to know how many samples of each label clients have."""
        return False

    def problems(self, clients: int, classes: int | None) -> Iterator[tuple[str, str]]:
        """Yields what does not fit the data, each with its key.

        clients: how many there are. classes: how many labels the data have; None if only their files tell.
        """
        yield from ()
