"""What an algorithm's server side may use: samples of the server's own, and other aggregators to share the work."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from actors import Alone, Gang
from raysim.local.model import Model
from raysim.local.net import LossFunction, Net
from raysim.local.samples import Samples
from raysim.local.settings import Local
from raysim.local.task import PREDICTED, Task
from raysim.rng import generator
from raysim.terms import Population


class Company(NamedTuple):
    """Who shares a server's work. shards: parts into which it is cut; they alone decide bits, not who does them."""

    gang: Gang = Alone()
    shards: int = 1


class ServerTask(Task):
    """The server at work, in a step."""

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
    ) -> None:
        """labels: of its samples, (n,) int64. classes: how many labels there are. in_domain: whether they are the
        clients' labels. reference: samples like the clients', to compare with only; None where the scenario asks for
        none. company: who shares the work. The other arguments are those of Task."""
        super().__init__(net, received, samples, local, population, key)
        self.labels, self.classes, self.in_domain = labels, classes, in_domain
        self.reference, self.company = reference, company
        self._elsewhere = 0.0  # passes by other members of the gang

    @property
    def version(self) -> int:
        """That the step makes: how many steps there were with it."""
        return self._key[2]

    @property
    def passes(self) -> float:
        """Passes of samples through the network since the task was made, by all members of the gang: a forward pass
        is one, a backward pass two."""
        return self._net.passes - self._begun + self._elsewhere

    def batches(
        self, epochs: int, batch_size: int | None, data: tuple[Tensor, Tensor] | None = None, stream: int = 0
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Mini-batches of the server's samples, or of others, shuffled for each epoch; the same in all of a gang."""
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
        """The gradient of the mean loss over a batch, in eval mode, (size,).

        loss: from outputs and targets to a 0-d value, instead of the data's own. embedded: it gets what enters the
        model's personal part, or its last linear layer where nothing is personal, in place of outputs.
        """
        self._net.load(model)
        self._net.mode(training=False)
        part = self._net.part(None)
        if loss is None or not embedded:
            _, gradients = self._net.gradients(x, y, part.parameters, loss)
        else:
            entered: list[Tensor] = []

            def of_entered(_: Tensor, target: Tensor) -> Tensor:
                if not entered[0].requires_grad:
                    raise ValueError(
                        "model: must have parameters that train before its last linear layer, or its personal part, to "
                        "steer by data of other labels, got none; take another model, or server_data in_domain"
                    )
                return loss(entered[0], target)

            hook = self._net.head.register_forward_pre_hook(lambda _, inputs: entered.append(inputs[0]))
            try:
                _, gradients = self._net.gradients(x, y, part.parameters, of_entered)
            finally:
                hook.remove()
        whole, views = part.flat(self._net.layout)
        torch._foreach_copy_(views, list(gradients))
        return whole

    def features(self, model: Model) -> Tensor:
        """What `embed` gives of all the server's samples, (n, ...)."""
        return self._of_all(lambda inputs: self.embed(model, inputs))

    def outputs(self, model: Model) -> Tensor:
        """What `predict` gives of all the server's samples, (n, ...)."""
        return self._of_all(lambda inputs: self.predict(model, inputs))

    def relabelled(self, y: Tensor) -> Samples:
        """The server's inputs with other targets (n, ...), to train on."""
        return self._samples.relabelled(y)

    def _of_all(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        """Of all inputs, which are loaded piece by piece; the members of a gang share them."""

        def of(rows: Tensor) -> Tensor:
            pieces = torch.split(rows, PREDICTED)
            return torch.cat([function(self._samples.take(piece.numpy())[0]) for piece in pieces])

        return torch.cat(self._share(of, (torch.arange(self.samples),)))

    def reduce(self, function: Callable[..., Tensor], *arrays: Tensor) -> Tensor:
        """The sum of function(shard, ...) over shards of the arrays, which are cut along their first axis.

        The members of a gang take shards in turn. They exchange what the function gives and sum it in order of shards.
        """
        first, *others = self._share(function, arrays)
        total = first.clone()
        for part in others:
            total += part
        return total

    def _share(self, function: Callable[..., Tensor], arrays: tuple[Tensor, ...]) -> list[Tensor]:
        """What the function gives of each shard. A shard is never empty."""
        gang, number = self.company.gang, min(self.company.shards, len(arrays[0]))
        shards = list(zip(*(torch.tensor_split(array, number) for array in arrays), strict=True))
        if gang.size == 1:
            return [function(*shard) for shard in shards]
        before = self._net.passes
        mine = [function(*shard).cpu().numpy() for shard in shards[gang.rank :: gang.size]]
        passed = self._net.passes - before
        everyone: list[tuple[list[np.ndarray], float]] = gang.gather((mine, passed))
        self._elsewhere += sum(others for _, others in everyone) - passed
        parts = [everyone[shard % gang.size][0][shard // gang.size] for shard in range(number)]
        return [torch.tensor(part, device=self._net.device) for part in parts]
