"""Narrower models and their slices of the server's: what is cut, by hand, and what cannot be cut."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from raysim.models import CNN, MLP, Module, ResNet, Torchvision, Transformer
from raysim.models.build import initialise
from raysim.models.language_models import BERT, GPT, CausalLM, SequenceClassifier
from raysim.models.layout import Layout
from raysim.models.part import ModelPart, share_of
from raysim.models.slices import Cut, Slices, require_consistent
from raysim.parts.errors import BadValue

IMAGE, TEXT = (3, 32, 32), (12,)
LLAMA = {
    "model_type": "llama",
    "hidden_size": 16,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 1,
    "intermediate_size": 24,
}


class Modulated(nn.Module):
    """A layer with a matrix of its own."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.hidden, self.head = nn.Linear(64, 8), nn.Linear(8, classes)
        self.mixing = Mixing()

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.mixing(self.hidden(x.flatten(1))))


class Mixing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.matrix = nn.Parameter(torch.eye(8))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.matrix


def modules(part: ModelPart, shape: Any, width: float, classes: int = 10) -> list[tuple[nn.Module, Layout]]:
    """Returns the whole module and a narrower one, with their layouts."""
    made = [initialise(part, shape, classes, 0, one) for one in (1.0, width)]
    return [(one, Layout(one, channels_last=part.channels_last)) for one in made]


def slices(whole: tuple[nn.Module, Layout], part: tuple[nn.Module, Layout]) -> Slices:
    return Slices(*whole, *part)


MODELS: list[tuple[ModelPart, Any]] = [
    (MLP(hidden=(10, 7)), (8, 8)),
    (CNN(channels=(10, 6), hidden=20), (1, 28, 28)),
    (ResNet(depth=14, personal=()), IMAGE),
    (Torchvision(model="resnet18"), IMAGE),
    (Torchvision(model="mobilenet_v2"), IMAGE),
    (Torchvision(model="vit_b_32"), IMAGE),
    (Transformer(width=8, heads=2, layers=2, personal=()), TEXT),
    (CausalLM(config=GPT), TEXT),
    (CausalLM(config=LLAMA), TEXT),
    (SequenceClassifier(config={**BERT, "vocab_size": 20}), TEXT),
    (Module(module="toys_levels:Wide"), (8, 8)),
]


@pytest.mark.parametrize(("part", "shape"), MODELS, ids=lambda one: getattr(one, "name", ""))
@pytest.mark.parametrize("shift", [0, 3])
def test_a_slice_is_a_network_of_the_same_kind(part: ModelPart, shape: Any, shift: int) -> None:
    """It holds each of its elements once, none of the first inputs and last outputs is cut, and what it computes is
    what the whole one does where all else is zero."""
    whole, narrow = modules(part, shape, 0.5)
    found = slices(whole, narrow)
    index = found.of(shift)
    assert len(index.w.unique()) == len(index.w) == narrow[1].size
    assert len(index.buffers.unique()) == len(index.buffers) == sum(one.size for one in narrow[1].buffers)
    sizes = [[tuple(layout.entries[place].shape) for place in (0, -1)] for _, layout in (whole, narrow)]
    inputs = 0 if shape == TEXT else 1
    assert sizes[0][0][inputs] == sizes[1][0][inputs]
    x = torch.randint(0, 10, (2, *shape)) if shape == TEXT else torch.randn(2, *shape)
    require_consistent(whole, narrow, found, x, shift)


def test_units_are_cut_inside_each_head() -> None:
    """Two heads of 4 units keep 2 each: in queries, keys and values, and in what enters the last product."""
    part, shape, _ = Transformer(width=8, heads=2, layers=2, personal=()), TEXT, None
    whole, narrow = modules(part, shape, 0.5)
    places = torch.arange(whole[1].size)
    entries = {one.name: one for one in whole[1].entries}
    held = set(slices(whole, narrow).of(0).w.tolist())
    qkv, out = (entries[f"last.layers.0.{name}.weight"] for name in ("qkv", "out"))
    rows = places[qkv.offset : qkv.offset + qkv.size].view(24, 8)[:, 0].tolist()
    columns = places[out.offset : out.offset + out.size].view(8, 8)[0].tolist()
    assert [row in held for row in rows] == [True, True, False, False] * 6
    assert [column in held for column in columns] == [True, True, False, False] * 2


def test_windows_go_round() -> None:
    """C4-1: of 4 units, 2 are kept, in versions 0, 1 and 3; of flattened channels, with their pixels."""
    assert [Cut(0, 4, 2).places(shift).tolist() for shift in (0, 1, 3)] == [[0, 1], [1, 2], [3, 0]]
    assert Cut(1, 3, 1, inner=2).places(2).tolist() == [4, 5]
    assert Cut(0, 2, 1, groups=3).places(1).tolist() == [1, 3, 5]


def test_widths_are_rounded_up() -> None:
    assert [share_of(10, 1 / 2**k) for k in range(5)] == [10, 5, 3, 2, 1]
    assert share_of(100, 0.07) == 7


@pytest.mark.parametrize(
    ("part", "shape", "shift", "text"),
    [
        (Module(module="toys_levels:Joined"), (8, 8), 0, "head of a narrower model does not compute"),
        (Module(module="test_widths:Modulated"), (8, 8), 0, "mixing is a Mixing, which cannot be cut"),
        (ResNet(depth=14, personal=()), IMAGE, -1, "group2.1.conv1 of a narrower model does not compute"),
        (Torchvision(model="resnext50_32x4d"), IMAGE, 0, "layer1.0.conv2 is a convolution in 32 groups"),
        (MLP(hidden=()), (8, 8), 0, "must have hidden layers"),
    ],
)
def test_what_cannot_be_cut_names_the_layer(part: ModelPart, shape: Any, shift: int, text: str) -> None:
    with pytest.raises(BadValue, match=text):
        whole, narrow = modules(part, shape, 0.5)
        require_consistent(whole, narrow, slices(whole, narrow), torch.randn(2, *shape), shift)
