"""Many models of one architecture, each of which takes samples of its own: what they share is computed at once."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from raysim.local.chain import is_hooked
from raysim.local.net import Net

ALIGNMENT = 64  # bytes; results of BLAS can depend on it
_NOISE = 0.05  # of the parameters with which bits are tried; some are zero at first
_COMPARED = 24  # numbers of each row that are compared, at least
_DRAWING = (nn.FractionalMaxPool2d, nn.FractionalMaxPool3d)  # in evaluations, too


class ManyModels:
    """Models that share all parameters of a network but for a part, and so all layers before the first one with it.

    These layers take the samples of all models at once, and linear heads are one product. Kernels may then round
    otherwise than for each model alone. How they round depends on sizes and not on values, so it is tried with random
    numbers, once for each sequence of sizes that comes again. A model whose bits differ is computed alone. Where a
    kernel differs, four of five numbers of a row do, so rows of few outputs are tried with several draws.
    """

    def __init__(self, net: Net, own: str | None = None) -> None:
        """own: which part is each model's own: "personal", "w" for all, or none. The network must be one that fits."""
        part = {"personal": slice(net.layout.cut, None), "w": slice(None), None: slice(0)}[own]
        parameters = {id(one) for one in net.part("personal" if own == "personal" else None).parameters}
        assert isinstance(net.module, nn.Sequential)
        layers = list(net.module)  # `children` would leave out a layer that is there twice
        of_part = [any(id(one) in parameters for one in layer.parameters()) for layer in layers]
        first = of_part.index(True) if own else len(layers)
        self._w, self._own = net.w, net.w[part]
        self._shared, self._rest = nn.Sequential(*layers[:first]), layers[first:]
        last = self._rest[0] if len(self._rest) == 1 else None
        self._head = last if type(last) is nn.Linear and len(list(last.parameters())) == len(parameters) == 2 else None
        self._differ: dict[tuple[int, ...], list[int] | None] = {}  # by sizes: models that differ; None: not tried

    @staticmethod
    def fits(net: Net) -> bool:
        """Whether a network is a sequence of torch's own layers, which keep nothing of what they compute, nor draw."""
        modules = list(net.module.modules())
        plain = all(type(one).__module__.startswith("torch.nn.") and not is_hooked(one) for one in modules)
        plain = plain and not any(isinstance(one, _DRAWING) for one in modules)
        return plain and type(net.module) is nn.Sequential and not net.layout.buffers

    def __call__(self, x: Tensor, sizes: tuple[int, ...], vectors: Sequence[Tensor]) -> list[Tensor]:
        """Returns the outputs of each model, without a gradient. The network must hold the shared values, in eval mode.

        x: the samples of all models, one after another. sizes: how many each has. vectors: each model's own part.
        """
        pairs = list(zip(x.split_with_sizes(sizes), vectors, strict=True))
        if len(sizes) == 1 or sizes not in self._differ:
            self._differ[sizes] = None
            return [self._alone(*pair) for pair in pairs]
        if (differ := self._differ[sizes]) is None:
            differ = self._differ[sizes] = self._tried(x, sizes)
        outputs = self._of_all(self._shared(x), sizes, vectors)
        for place in differ:
            outputs[place] = self._alone(*pairs[place])
        return outputs

    def _alone(self, x: Tensor, vector: Tensor) -> Tensor:
        return self._of_one(self._shared(_aligned(x)), vector)

    def _of_one(self, entered: Tensor, vector: Tensor) -> Tensor:
        """Returns a model's outputs. entered: what the shared layers returned."""
        self._own.copy_(vector)
        for layer in self._rest:
            entered = layer.forward(entered)
        return entered

    def _of_all(self, entered: Tensor, sizes: tuple[int, ...], vectors: Sequence[Tensor]) -> list[Tensor]:
        """Returns the outputs of all models. entered: what the shared layers returned for all samples at once."""
        if self._head and len(set(sizes)) == 1 and entered.ndim == 2:
            each, weight = torch.stack(list(vectors)).to(entered.device), self._head.weight
            weights, biases = each[:, : weight.numel()].view(-1, *weight.shape), each[:, None, weight.numel() :]
            return list(torch.baddbmm(biases, entered.view(len(sizes), sizes[0], -1), weights.transpose(1, 2)))
        pairs = zip(entered.split_with_sizes(sizes), vectors, strict=True)
        return [self._of_one(_aligned(one), vector) for one, vector in pairs]

    def _tried(self, x: Tensor, sizes: tuple[int, ...]) -> list[int]:
        """Returns which models have other bits together than alone."""
        before, drawn = self._w.clone(), torch.Generator(x.device).manual_seed(0)
        differ: set[int] = set()
        compared = 0
        while compared < _COMPARED:
            noise = torch.randn(self._w.shape, generator=drawn, device=x.device)
            self._w.copy_(before.add(noise, alpha=_NOISE))
            x = torch.empty_like(x).normal_(generator=drawn) if x.is_floating_point() else x
            outputs = self._differing(x, sizes, differ)
            compared += outputs[0][0].numel()
        self._w.copy_(before)
        return sorted(differ)

    def _differing(self, x: Tensor, sizes: tuple[int, ...], differ: set[int]) -> list[Tensor]:
        """Adds the models that have other bits together than alone, and returns the outputs of each."""
        entered, vectors = self._shared(x), [self._own.clone()] * len(sizes)
        outputs = self._of_all(entered, sizes, vectors)
        for place, pair in enumerate(zip(x.split_with_sizes(sizes), entered.split_with_sizes(sizes), strict=True)):
            alone = self._shared(_aligned(pair[0]))
            if not (torch.equal(alone, pair[1]) and torch.equal(self._of_one(alone, vectors[place]), outputs[place])):
                differ.add(place)
        return outputs


def _aligned(rows: Tensor) -> Tensor:
    return rows if rows.data_ptr() % ALIGNMENT == 0 else rows.clone()
