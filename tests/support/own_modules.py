"""Modules, losses and metrics of the tests' own, which know nothing of raysim."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Net(nn.Module):
    """A network as tutorials have them: a convolution, BatchNorm, a `view`, and arguments with annotations."""

    def __init__(self, input_shape: Any, classes: int, hidden: int = 16, rates: list[float] | None = None) -> None:
        super().__init__()
        self.rates = rates
        self.conv = nn.Conv2d(input_shape[0], 6, 3, padding=1)
        self.norm = nn.BatchNorm2d(6)
        self.pixels = 6 * input_shape[1] * input_shape[2] // 4
        self.dense = nn.Linear(self.pixels, hidden)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        return self.head(F.relu(self.dense(x.view(-1, self.pixels))))


class Flat(nn.Module):
    """One matrix, and no layer that is called."""

    def __init__(self, outputs: int = 10, dtype: str = "float32") -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(64, outputs, dtype=getattr(torch, dtype)))

    def forward(self, x: Tensor) -> Tensor:
        return x.view(-1, 64) @ self.w


class Pair(Flat):
    """Two outputs."""

    def forward(self, x: Tensor) -> Any:
        return super().forward(x), x


class Tied(nn.Module):
    """Two layers with one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(64, 64, bias=False), nn.Linear(64, 64, bias=False)
        self.second.weight = self.first.weight
        self.head = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.second(torch.relu(self.first(x.flatten(1)))))


def lazy(classes: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.LazyLinear(classes))


def frozen(classes: int) -> nn.Module:
    return Flat(classes).requires_grad_(False)


def no_module() -> dict[str, int]:
    return {}


def hits(outputs: Tensor, labels: Tensor) -> float:
    """Accuracy, computed here."""
    return float((outputs.argmax(1) == labels).double().mean())


def above(outputs: Tensor, labels: Tensor, threshold: float) -> Tensor:
    """The share of outputs above a threshold; the fewer, the better."""
    return (outputs > threshold).float().mean()


above.larger_is_better = False  # type: ignore[attr-defined]


def shapes(outputs: Tensor, labels: Tensor) -> Any:
    return outputs


def written(outputs: Tensor, labels: Tensor) -> Any:
    return "0.5"


def endless(outputs: Tensor, labels: Tensor) -> float:
    return float(1 + outputs.abs().max()) * float("inf")


def hinge(outputs: Tensor, labels: Tensor, margin: float = 1.0) -> Tensor:
    """The multi-class hinge loss of each sample."""
    return F.multi_margin_loss(outputs, labels, margin=margin, reduction="none")


def mean_hinge(outputs: Tensor, labels: Tensor) -> Tensor:
    return hinge(outputs, labels).mean()


def doubled(x: Tensor) -> Tensor:
    return 2 * x


class Reader(nn.Module):
    """A GRU over tokens that reads each sequence to its own length: what comes after it changes nothing."""

    def __init__(self, input_shape: dict[str, tuple[int, ...]], classes: int, vocabulary: int = 12) -> None:
        super().__init__()
        assert set(input_shape) == {"tokens", "lengths"}
        self.embedding = nn.Embedding(vocabulary, 6)
        self.gru = nn.GRU(6, 8, batch_first=True)
        self.head = nn.Linear(8, classes)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(
            self.embedding(tokens), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        _, last = self.gru(packed)
        logits: Tensor = self.head(last[-1])
        return logits


class MaskedReader(nn.Module):
    """An LSTM over tokens, of whose outputs it takes the mean over those within each sequence's length."""

    def __init__(self, input_shape: dict[str, tuple[int, ...]], classes: int) -> None:
        super().__init__()
        assert set(input_shape) == {"tokens", "lengths"}
        self.embedding = nn.Embedding(12, 6)
        self.lstm = nn.LSTM(6, 8, batch_first=True)
        self.head = nn.Linear(8, classes)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        states, _ = self.lstm(self.embedding(tokens))
        mask = torch.arange(tokens.shape[1]) < lengths[:, None]
        logits: Tensor = self.head((states * mask[..., None]).sum(1) / lengths[:, None])
        return logits
