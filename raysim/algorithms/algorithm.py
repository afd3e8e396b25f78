"""What algorithms with a server and without one have in common: what they say of themselves before a run."""

from typing import ClassVar

from raysim.algorithms.signatures import Local, Problems, Setting
from raysim.schedules import Schedulable
from raysim.terms import Traffic, Trip


class Algorithm(Schedulable):
    """The base of `Central` and `Peer`, one of which an algorithm derives from.

    A custom class runs as `algorithm: my_module:MyClass`. One that comes with raysim is imported in
    `raysim/algorithms/__init__.py`, in one line, and has no other place to be registered.
    """

    keeps_personal: ClassVar[bool] = False
    """Whether clients or peers keep the personal part of the model, and only the shared part travels. `model.norm` can
    then be local."""

    name: str

    def embeds(self, scenario: Setting) -> bool | str:
        """Whether it calls `task.embed`; or, instead of true, the name of the sub-module that it embeds with. A run
        then checks at its start that the model can embed."""
        return False

    def problems(self, scenario: Setting) -> Problems:
        """Yields what the algorithm cannot do with the rest of the scenario. Paths start at the scenario."""
        return ()

    def samples_seen(self, local: Local, samples: int) -> int:
        """Returns for how many samples a client computes gradients in one `update`, or a peer in one `local`. Computed
        delays follow that.

        samples: the number of samples that the client or peer holds. A sample counts once for each time that it is
        used, as if no training stopped early. Gradients of a part of the model count like those of the whole.
        Predictions and embeddings do not count here, nor does what `mix` does: raysim measures them.
        """
        return local.total_samples(samples)

    def traffic(self, trip: Trip) -> Traffic:
        """Returns how many bytes an update of a client, or a peer's message, and the message to it take on a network.

        It is needed where tensors hold more than what travels, such as zeros. Tables, budgets and computed delays all
        count what it returns, and so it follows from sizes alone, before anything is trained.
        """
        return trip.tensors
