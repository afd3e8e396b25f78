"""What an algorithm may use in a server step: the server's own samples, and other aggregators to share the work."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from actors import Gang
from raysim.local.head import embedding
from raysim.local.model import Model
from raysim.local.net import Net
from raysim.local.outputs import LossFunction
from raysim.local.samples import Samples
from raysim.local.settings import Local
from raysim.local.task import PREDICTED, Task
from raysim.parts.errors import BadInput
from raysim.parts.rng import generator, seed_globals
from raysim.terms import Arrival, Population, Record


class Company(NamedTuple):
    """The aggregators that share a server's work. shards: the number of parts into which it is cut. Bits depend on
    it, and not on the number of aggregators."""

    gang: Gang = Gang()
    shards: int = 1


class ServerTask(Task):
    """A task for one server step: it trains and predicts on the server's own samples."""

    table: ClassVar[str] = "steps"

    def __init__(
        self,
        net: Net,
        received: Model,
        samples: Samples,
        local: Local,
        population: Population,
        key: tuple[int, int, int],
        *,
        labels: Tensor,
        classes: int,
        in_domain: bool,
        reference: Samples | None = None,
        company: Company = Company(),  # noqa: B008 - a constant
        chunks: Sequence[int] = (),
    ) -> None:
        """Makes the task. Arguments that are not explained here are those of Task.

        labels: the labels of the server's samples, (n,) int64. classes: the number of different labels. in_domain:
        whether they are the clients' labels. reference: samples like the clients', only to compare with; None if the
        scenario asks for none. company: who shares the work. chunks: the number of updates in each chunk of the step;
        () if all are in one.
        """
        super().__init__(net, received, samples, local, population, key)
        self.labels, self.classes, self.in_domain = labels, classes, in_domain
        self.reference, self.company, self._chunks = reference, company, chunks
        self.held: Callable[..., tuple[Tensor, Tensor]]
        """Returns, for the arrivals of the step and a weight of each, the sum of the weights of those that hold a
        parameter, for each, (d,), and the sum of all, 0-d. A client holds its slice, without the rows of labels that it
        lacks in the last layer. With "buffers" as a third argument, it does so for the numbers of buffers."""
        self.together: Sequence[tuple[ServerTask, Sequence[Arrival], Record]] = ()
        """The tasks of the step for all models of the server whose clients reported, each with what arrived of them and
        with their updates."""
        self.shared: Record = {}
        """What `step` has made for one of these models, and needs for the others, too: it may put entries in."""
        self.vector_flops = 0.0
        """Arithmetic on vectors, besides the sum of updates and passes through the network, for `server_flops`."""
        self._elsewhere = 0.0  # passes of samples by other members of the gang
        self._shared = 0  # how often work was shared

    @property
    def version(self) -> int:
        """The version of the model that this step makes, which is the number of steps so far with this one."""
        return self._key[2]

    @property
    def passes(self) -> float:
        """Passes of samples through the network since the task was made, by all members of the gang together. A forward
        pass of a sample counts as one, a backward pass as two."""
        return self._net.passes - self._begun + self._elsewhere

    def weighted_sum(self, updates: Tensor, weights: Sequence[float]) -> Tensor:
        """Returns the weighted sum (d,) of the step's updates (n, d), in the order of `arrivals`.

        It has the bits that the sum would have had if `weigh` had returned these weights.
        """
        total: Tensor | None = None
        pairs = zip(updates, weights, strict=True)
        for size in self._chunks or [len(updates)]:
            vector, weight = next(pairs)
            part = vector * weight
            for vector, weight in islice(pairs, size - 1):
                part.add_(vector, alpha=weight)
            total = part if total is None else total.add_(part)
        assert total is not None
        return total

    def batches(
        self, epochs: int, batch_size: int | None, data: tuple[Tensor, Tensor] | None = None, stream: int = 0
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Yields mini-batches, shuffled anew for each epoch. All members of a gang get the same ones.

        batch_size: None for all samples at once. data: inputs and targets to use instead of the server's samples.
        stream: a number of this sequence of batches; different streams of one step are shuffled differently.
        """
        seed, server, version = self._key
        order = generator(seed, f"batches {stream}", server, version)
        samples = Samples.of(*data) if data else self._samples
        for _ in range(epochs):
            shuffled = order.permutation(len(samples))
            size = batch_size or len(samples)
            for first in range(0, len(samples), size):
                yield samples.take(shuffled[first : first + size])

    def batch_gradient(
        self, model: Model, x: Tensor, y: Tensor, loss: LossFunction | None = None, *, embedded: bool = False
    ) -> Tensor:
        """Returns the gradient of the mean loss over a batch by all parameters, (size,), with the model in eval mode.

        loss: a function from outputs and targets to a 0-d value; by default the loss of the data. embedded: whether the
        loss gets, instead of outputs, what enters the model's personal part, or its last linear layer if no part is
        personal. Raises ValueError if embedded and no parameter before that part trains.
        """
        if loss is None or not embedded:
            return self._gradient(model, x, y, loss)

        def of_entered(_: Tensor, target: Tensor, entered: Tensor) -> Tensor:
            if not entered.requires_grad:
                must = "must have trainable parameters before its personal part, or its last linear layer"
                why = "if the server's labels are not the clients'"
                raise BadInput("model", f"{must}, {why}, got none; take another model, or in_domain data")
            return loss(entered, target)

        with embedding(self._net.head, of_entered) as whole_loss:
            return self._gradient(model, x, y, whole_loss)

    def features(self, model: Model) -> Tensor:
        """Returns what `embed` gives for all the server's samples, (n, ...)."""
        return self._of_all(lambda inputs: self.embed(model, inputs))

    def outputs(self, model: Model) -> Tensor:
        """Returns what `predict` gives for all the server's samples, (n, ...)."""
        return self._of_all(lambda inputs: self.predict(model, inputs))

    def relabelled(self, y: Tensor) -> Samples:
        """Returns the server's inputs with other targets y (n, ...), to train on."""
        return self._samples.relabelled(y)

    def _of_all(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        """Applies a function to all inputs, piece by piece. The members of a gang share the work."""

        def of(rows: Tensor) -> Tensor:
            pieces = torch.split(rows, PREDICTED)
            return torch.cat([function(self._samples.take(piece.numpy())[0]) for piece in pieces])

        return torch.cat(self._share(of, (torch.arange(self.samples),)))

    def reduce(self, function: Callable[..., Tensor], *arrays: Tensor) -> Tensor:
        """Cuts the arrays into shards along their first axis, and returns the sum of function(shard, ...) over shards.

        The members of a gang take shards in turn. They exchange the results and sum them in the order of shards, so
        all members get the same bits.
        """
        first, *others = self._share(function, arrays)
        total = first.clone()
        for part in others:
            total += part
        return total

    def _share(self, function: Callable[..., Tensor], arrays: tuple[Tensor, ...]) -> list[Tensor]:
        """Returns what the function gives for each shard, in order. No shard is empty."""
        gang, number = self.company.gang, min(self.company.shards, len(arrays[0]))
        shards = list(zip(*(array.tensor_split(number) for array in arrays), strict=True))
        if self.company.shards == 1:
            return [function(*shard) for shard in shards]
        self._shared += 1
        before = self._net.passes
        mine = []
        for shard in range(gang.rank, number, gang.size):
            self._seed(f"shard {shard}")
            mine.append(function(*shards[shard]))
        self._seed("shared")  # so that all members continue with the same draws
        if gang.size == 1:
            return mine
        passed = self._net.passes - before
        sent = [part.cpu().numpy() for part in mine]
        everyone: list[tuple[list[np.ndarray], float]] = gang.gather((sent, passed))
        self._elsewhere += sum(others for _, others in everyone) - passed
        parts = [everyone[shard % gang.size][0][shard // gang.size] for shard in range(number)]
        return [torch.tensor(part, device=self._net.device) for part in parts]

    def _seed(self, purpose: str) -> None:
        seed, _, version = self._key
        seed_globals(seed, purpose, version, self._shared)
