"""Models have the published sizes, take what they say, and are the same under one seed."""

import json
from typing import Annotated, Any

import pytest
import torch
from equilibria import draw
from model_inputs import CIFAR, MNIST, TEXT, images
from pydantic import TypeAdapter, ValidationError

from raysim.models import (
    CNN,
    DEQMLP,
    MLP,
    MODELS,
    DEQResNet,
    DEQTransformer,
    FedFADMMCNN,
    Iteration,
    Linear,
    ModelPart,
    ResNet,
    Timm,
    Torchvision,
    Transformer,
    Vector,
)
from raysim.models.build import initialise
from raysim.models.layout import Layout
from raysim.models.universal import explicit_attention, fused_attention
from raysim.parts.part import OneOf

FEDDLE_CNN: dict[str, Any] = {"channels": (32, 64, 64), "kernel": 3, "padding": "same", "hidden": 64}  # Table 7
STRIDES: dict[str, Any] = {**FEDDLE_CNN, "stride": 2, "pool": "last", "hidden": 128}


def part(**fields: Any) -> ModelPart:
    """A part as it is read from a file."""
    [cls] = [m for m in MODELS if m.model_fields["name"].default == fields["name"]]
    return cls.model_validate_json(json.dumps(fields))


def size_of(part: ModelPart, shape: tuple[int, ...], num_classes: int = 10) -> int:
    return Layout(initialise(part, shape, num_classes, seed=0)).parameters


def test_what_is_no_module_is_refused() -> None:
    class Odd(ModelPart):
        name: str = "odd"

        def build(self, shape: tuple[int, ...], num_classes: int) -> Any:
            return None

    with pytest.raises(ValueError, match=r"`build` must return a torch\.nn\.Module, got NoneType"):
        initialise(Odd(), MNIST, 10, seed=0)


@pytest.mark.parametrize(
    ("fields", "shape", "parameters"),
    [
        ({"name": "mlp"}, MNIST, 159_010),
        ({"name": "mlp", "hidden": [200, 200]}, (784,), 199_210),
        ({"name": "mlp", "hidden": []}, (784,), 7_850),
        ({"name": "linear"}, MNIST, 7_840),
        ({"name": "linear", "bias": True}, (784,), 7_850),
        ({"name": "cnn"}, MNIST, 582_026),
        ({"name": "cnn", "padding": "same"}, MNIST, 1_663_370),
        (
            {"name": "cnn", "channels": [2, 3], "kernel": 3, "padding": "same", "pool": "last", "hidden": 4},
            CIFAR,
            3_239,
        ),
        ({**FEDDLE_CNN, "name": "cnn"}, CIFAR, 122_570),
        ({**STRIDES, "name": "cnn"}, CIFAR, 90_506),
        ({**STRIDES, "name": "cnn"}, MNIST, 89_930),  # 28 pixels end as 2, like 32
        ({"name": "fedf_admm_cnn"}, MNIST, 1_663_562),
        ({"name": "fedf_admm_cnn"}, CIFAR, 2_156_682),
        ({"name": "vector"}, (2 * 7 + 1,), 7),
    ],
)
def test_sizes(fields: dict[str, Any], shape: tuple[int, ...], parameters: int) -> None:
    assert size_of(part(**fields), shape) == parameters


@pytest.mark.parametrize(
    ("model", "shape", "num_classes", "shared", "personal"),
    [
        (DEQResNet(size="S"), MNIST, 62, 984_896, 7_998),
        (DEQResNet(size="M"), CIFAR, 10, 2_725_120, 1_290),
        (DEQResNet(size="M"), CIFAR, 100, 2_725_120, 12_900),
        # Eight channels outside the block and 16 inside it, 512 features of 8 x 8 pixels, and 32 and 16 units.
        (DEQResNet(size="S", width_divisor=8), CIFAR, 10, 232 + 2 * 1_152 + 64 + 513 * 32 + 33 * 16 + 32, 170),
        (DEQMLP(), MNIST, 62, 785 * 512 + 512 * 512 + 513 * 128, 7_998),
        (ResNet(depth=14), CIFAR, 10, 2_832_320, 1_290),
        (ResNet(depth=20), MNIST, 62, 4_381_248, 7_998),
        (ResNet(depth=34), CIFAR, 10, 7_777_984, 1_290),
        # Three groups of 32, 64 and 128 channels. A block has two convolutions and four vectors of normalisation.
        (
            ResNet(depth=14, width_divisor=2),
            CIFAR,
            10,
            (27 * 32 + 64)
            + (2 * (2 * 9 * 32 * 32 + 4 * 32))
            + (9 * 32 * 64 + 3 * 9 * 64 * 64 + 2 * 4 * 64)
            + (9 * 64 * 128 + 3 * 9 * 128 * 128 + 2 * 4 * 128)
            + (129 * 128 + 129 * 64 + 2 * 64),
            650,
        ),
        # Of a block of 64: four times 64 x 65 of attention, 64 x 4 x 64 twice with biases, and two norms.
        (Transformer(), TEXT, 90, 170 * 64 + 7 * 49_984, 49_984 + 128 + 5_850),
        (DEQTransformer(), TEXT, 90, 170 * 64 + 4 * 49_984 + 128, 49_984 + 128 + 5_850),
    ],
)
def test_sizes_of_the_part_that_travels_and_of_the_clients_own(
    model: ModelPart, shape: tuple[int, ...], num_classes: int, shared: int, personal: int
) -> None:
    layout = Layout(initialise(model, shape, num_classes, seed=0), model.personal)
    own = layout.size - layout.cut
    assert (layout.parameters - own, own) == (shared, personal)


@pytest.mark.parametrize(
    "model",
    [
        Linear(bias=True),
        MLP(),
        MLP(activation="tanh"),
        MLP(activation="gelu"),
        CNN(channels=(4,)),
        CNN(pool="last"),
        CNN(**FEDDLE_CNN),
        CNN(**STRIDES),
        CNN(channels=(4, 4), stride=3, kernel=2, padding="same", pool="last"),
        CNN(channels=(4, 4), stride=2, kernel=4),
        FedFADMMCNN(),
        DEQMLP(width=8),
        DEQMLP(kappa=None, activation="tanh"),
        DEQResNet(),
        DEQResNet(width_divisor=8),
        ResNet(depth=14),
        ResNet(depth=14, width_divisor=8),
    ],
)
def test_a_batch_gives_logits_and_the_last_layer_is_the_head(model: ModelPart) -> None:
    module = initialise(model, MNIST, 7, seed=0)
    assert module(images(3, *MNIST)).shape == (3, 7)
    assert list(module.state_dict())[-1] == "head.bias"


def test_a_linear_model_starts_from_zeros_or_as_the_last_layer_of_an_mlp() -> None:
    zeros, random = (initialise(Linear(bias=True, start=start), MNIST, 10, seed=0) for start in ("zeros", "random"))
    assert all(parameter.count_nonzero() == 0 for parameter in zeros.parameters())
    mlp, x = initialise(MLP(hidden=()), MNIST, 10, seed=0), images(3, *MNIST)
    assert torch.equal(random(x), mlp(x))
    assert list(random.state_dict()) == ["head.weight", "head.bias"]


def test_the_vector_model_is_the_quadratic() -> None:
    """h/2 |x - a|^2 + <s, x>, worked out by hand, and its gradient h (x - a) + s."""
    module = initialise(Vector(start=(1.0, 2.0)), (5,), 1, seed=0)
    rows = torch.tensor([[0.0, 0.0, 0.0, 0.0, 2.0], [3.0, 2.0, 0.5, -1.0, 4.0]])
    losses = module(rows)
    assert losses.tolist() == [5.0, 8.0 + 0.5 - 2.0]
    losses[1].backward()
    assert module.x.grad.tolist() == [-7.5, -1.0]
    assert initialise(Vector(start=3.0), (3,), 1, seed=0).x.tolist() == [3.0]


@pytest.mark.parametrize("model", [Transformer(), DEQTransformer()])
def test_a_character_is_predicted_from_those_before_it(model: ModelPart) -> None:
    """So a change of the sixth changes what follows, and no logits before."""
    module = initialise(model, TEXT, 90, seed=0).eval()
    tokens = torch.arange(160).view(2, 80) % 90
    changed = tokens.clone()
    changed[0, 5] = 7
    with torch.no_grad():
        one, other = module(tokens), module(changed)
    assert one.shape == (2, 80, 90)
    assert torch.equal(one[1], other[1])
    assert not torch.allclose(one[0, 5:], other[0, 5:], atol=1e-2)
    if isinstance(model, Transformer):  # of a sample that takes another number of iterations, all may differ a little
        assert torch.equal(one[0, :5], other[0, :5])
    else:
        torch.testing.assert_close(one[0, :5], other[0, :5], atol=1e-2, rtol=0)


@pytest.mark.parametrize("length", [1, 7, 80])
def test_fused_attention_is_explicit_attention(length: int) -> None:
    """Training takes one of them, solves and evaluations the other."""
    q, k, v = draw(3, 2, 4, length, 8)
    torch.testing.assert_close(fused_attention(q, k, v), explicit_attention(q, k, v), atol=2e-6, rtol=1e-5)
    assert torch.equal(fused_attention(q, k, v), fused_attention(q, k, v))
    assert torch.equal(fused_attention(q[:1], k[:1], v[:1]), fused_attention(q, k, v)[:1])


def test_the_same_seed_gives_the_same_bits_and_the_global_generator_is_untouched() -> None:
    torch.manual_seed(5)
    state = torch.get_rng_state()
    first = initialise(CNN(), MNIST, 10, seed=3)
    assert torch.equal(state, torch.get_rng_state())
    torch.manual_seed(6)
    second, other = initialise(CNN(), MNIST, 10, seed=3), initialise(CNN(), MNIST, 10, seed=4)
    layout = Layout(first)
    assert torch.equal(layout.flatten(first), layout.flatten(second))
    assert not torch.equal(layout.flatten(first), layout.flatten(other))
    assert first.conv2.weight.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize(
    ("model", "shape", "message"),
    [
        (Torchvision(model="resnt18"), CIFAR, r"classifier of torchvision, got 'resnt18'; nearest are 'resnet18'"),
        (Timm(model="vit_tiny_patch16_22"), CIFAR, r"model of timm, got 'vit_tiny_patch16_22'; nearest are 'vit_tiny_"),
        (Timm(model="hf-hub:timm/resnet18"), CIFAR, r"must be a model of timm"),
        (Torchvision(model="mobilenet_v3_small"), (2, 8, 8), r"1 or 3 channels, got 2"),
        (CNN(), (784,), r"inputs must be images .* got shape \(784,\); try mlp"),
        (CNN(), (1, 12, 12), r"images must be large enough .* got \(1, 12, 12\); use padding: same"),
        (FedFADMMCNN(), (1, 3, 8), r"at least 4 x 4 pixels, got shape \(1, 3, 8\)"),
        (DEQResNet(), (1, 8, 3), r"images must have at least 4 x 4 pixels, got shape \(1, 8, 3\)"),
        (ResNet(), (784,), r"inputs must be images .* got shape \(784,\)"),
        (Transformer(), MNIST, r"inputs must be text \(tokens,\), got shape \(1, 28, 28\); try cnn"),
        (DEQTransformer(), MNIST, r"inputs must be text"),
        (Vector(), (4,), r"rows \[a, s, h\] of 2 size \+ 1 floats, got shape \(4,\)"),
        (Vector(start=(1.0,)), (5,), r"`start` must have as many values as the data's vectors, which is 2, got 1"),
    ],
)
def test_inputs_that_cannot_be_taken_are_refused(model: ModelPart, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        initialise(model, shape, 10, seed=0)


def test_a_scenario_names_its_model() -> None:
    models: TypeAdapter[ModelPart] = TypeAdapter(Annotated[ModelPart, OneOf(MODELS)])
    assert models.validate_json('"mlp"') == MLP()
    assert models.validate_json('{"name": "vector", "start": 2}') == Vector(start=2.0)
    assert len({m.model_fields["name"].default for m in MODELS}) == len(MODELS)
    with pytest.raises(ValidationError, match=r"'resnet18'.*does not match any of the expected tags"):
        models.validate_json('"resnet18"')
    with pytest.raises(ValidationError, match=r"width must be a multiple of heads, got width 64 and 5 heads"):
        models.validate_json('{"name": "transformer", "heads": 5}')
    deq = models.validate_json('{"name": "deq_resnet", "solver": "iteration", "backward": "implicit"}')
    assert deq == DEQResNet(solver=Iteration(), backward="implicit")
