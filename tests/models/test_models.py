"""Models have the published sizes, and their parameters live in one flat vector."""

import copy
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
import torch
from pydantic import TypeAdapter, ValidationError
from safetensors.torch import save_file
from torch import nn

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
from raysim.models.blocks import ResidualBlock
from raysim.models.build import initialise
from raysim.models.layers import ChannelLayerNorm
from raysim.models.layout import Layout
from raysim.models.universal import Layer
from raysim.part import OneOf

MNIST, CIFAR, TEXT = (1, 28, 28), (3, 32, 32), (80,)
FEDDLE_CNN: dict[str, Any] = {
    "channels": (32, 64, 64),
    "kernel": 3,
    "stride": 2,
    "padding": "same",
    "pool": "last",
    "hidden": 128,
}


def part(**fields: Any) -> ModelPart:
    """A part as it is read from a file."""
    [cls] = [m for m in MODELS if m.model_fields["name"].default == fields["name"]]
    return cls.model_validate_json(json.dumps(fields))


def size_of(part: ModelPart, shape: tuple[int, ...], num_classes: int = 10) -> int:
    return Layout(initialise(part, shape, num_classes, seed=0)).parameters


def images(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


class Net(nn.Module):
    """A bit of everything: a convolution, BatchNorm, a frozen and a scalar parameter, a head before the last layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 5, 3)
        self.norm = nn.BatchNorm2d(5)
        self.head = nn.Linear(5, 2)
        self.header = nn.Linear(2, 4)
        self.scale = nn.Parameter(torch.ones(()))
        self.frozen = nn.Parameter(torch.ones(7), requires_grad=False)
        self.register_buffer("constant", torch.ones(4), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.header(self.head(self.norm(self.conv(x)).relu().mean((2, 3)))) * self.scale


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
        ({**FEDDLE_CNN, "name": "cnn"}, CIFAR, 90_506),
        ({**FEDDLE_CNN, "name": "cnn"}, MNIST, 89_930),  # 28 pixels end as 2, like 32
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
        (DEQMLP(), MNIST, 62, 785 * 512 + 512 * 512 + 513 * 128, 7_998),
        (ResNet(depth=14), CIFAR, 10, 2_832_320, 1_290),
        (ResNet(depth=20), MNIST, 62, 4_381_248, 7_998),
        (ResNet(depth=34), CIFAR, 10, 7_777_984, 1_290),
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
        CNN(channels=(4, 4), stride=3, kernel=2, padding="same", pool="last"),
        CNN(channels=(4, 4), stride=2, kernel=4),
        FedFADMMCNN(),
        DEQMLP(width=8),
        DEQMLP(kappa=None, activation="tanh"),
        DEQResNet(),
        ResNet(depth=14),
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


def test_channel_layer_norm_is_over_the_channels_of_a_pixel() -> None:
    norm = ChannelLayerNorm(3)
    x = torch.zeros(1, 3, 1, 2)
    x[0, :, 0, 0], x[0, :, 0, 1] = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([10.0, 10.0, 40.0])
    expected = torch.tensor([[-1.2247449, 0.0, 1.2247449], [-0.7071068, -0.7071068, 1.4142136]]).T
    torch.testing.assert_close(norm(x)[0, :, 0], expected, atol=1e-5, rtol=0)
    assert not torch.allclose(norm(x), nn.GroupNorm(1, 3)(x), atol=0.1)


def test_channel_layer_norm_keeps_channels_last() -> None:
    y = ChannelLayerNorm(4)(images(2, 4, 5, 6).contiguous(memory_format=torch.channels_last))
    assert y.is_contiguous(memory_format=torch.channels_last)


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


def test_attention_is_that_of_torch() -> None:
    layer, x = Layer(8, 2, 1.0, 0.0, nn.Dropout), images(3, 5, 8)
    q, k, v = (part.unflatten(2, (2, 4)).transpose(1, 2) for part in layer.qkv(x).chunk(3, dim=2))
    fused = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    expected = layer.out(fused.transpose(1, 2).flatten(2))
    torch.testing.assert_close(layer.attention(x), expected, atol=1e-6, rtol=1e-5)


def test_a_halving_block_s_shortcut_pads_channels() -> None:
    block, x = ResidualBlock(2, 4).eval(), images(1, 2, 4, 4).abs()
    nn.init.zeros_(block.norm2.weight)
    y = block(x)
    assert torch.equal(y[:, 1:3], x[:, :, ::2, ::2])
    assert y[:, [0, 3]].count_nonzero() == 0
    whole = ResidualBlock(2, 2).eval()
    nn.init.zeros_(whole.norm2.weight)
    assert torch.equal(whole(x), x)


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


@pytest.mark.parametrize("model", [MLP(), MLP(personal=("head",)), CNN(), FedFADMMCNN(personal=("hidden", "head"))])
def test_a_bound_module_computes_the_same_from_the_flat_vector(model: ModelPart) -> None:
    original = initialise(model, MNIST, 10, seed=0).eval()
    layout, module = Layout(original, model.personal), initialise(model, MNIST, 10, seed=1).eval()
    w = layout.flatten(original)
    layout.bind(module, w)
    x = images(4, *MNIST)
    torch.testing.assert_close(module(x), original(x), atol=1e-6, rtol=0)
    assert torch.equal(layout.flatten(module), w)


def test_an_in_place_change_of_the_vector_changes_the_module_and_an_optimiser_changes_the_vector() -> None:
    module = Net()
    layout = Layout(module, ("head",))
    w = layout.flatten(module)
    layout.bind(module, w)
    assert module.conv.weight.is_contiguous(memory_format=torch.channels_last)
    w.zero_()
    assert module(images(2, 3, 8, 8)).count_nonzero() == 0
    assert module.frozen.sum() == 7
    w.copy_(torch.arange(layout.size))
    before = w.clone()
    module(images(2, 3, 8, 8)).sum().backward()
    torch.optim.SGD(layout.select(module), lr=0.1).step()
    gradient = torch.zeros(layout.size)
    for view, parameter in zip(layout.views(gradient), layout.select(module), strict=True):
        view.copy_(parameter.grad)
    assert gradient.count_nonzero() > 0
    torch.testing.assert_close(w, before - 0.1 * gradient)


def test_gradients_flow_through_views_and_views_can_be_batched() -> None:
    """torch.func over the flat vector, one and many, agrees with autograd on the module."""
    module = initialise(CNN(channels=(3, 4), hidden=5), MNIST, 10, seed=0)
    layout, x = Layout(module, ("head",)), images(2, *MNIST)

    def loss(w: torch.Tensor) -> torch.Tensor:
        named = {e.name: view for e, view in zip(layout.entries, layout.views(w), strict=True)}
        return torch.func.functional_call(module, named, x).square().sum()

    w = layout.flatten(module)
    module(x).square().sum().backward()
    expected = torch.zeros_like(w)
    for view, parameter in zip(layout.views(expected), layout.select(module), strict=True):
        view.copy_(parameter.grad)
    torch.testing.assert_close(torch.func.grad(loss)(w), expected, atol=1e-5, rtol=1e-4)
    batched = torch.func.vmap(torch.func.grad(loss))(torch.stack([w, w]))
    torch.testing.assert_close(batched[1], expected, atol=1e-5, rtol=1e-4)


def test_the_personal_part_comes_last_and_on_a_64_byte_boundary() -> None:
    module = Net()
    layout = Layout(module, ("head",))
    assert [e.name for e in layout.entries] == [
        *("scale", "conv.weight", "conv.bias", "norm.weight", "norm.bias", "header.weight", "header.bias"),
        *("head.weight", "head.bias"),
    ]
    shared, personal = 1 + 135 + 5 + 5 + 5 + 8 + 4, 12
    assert (layout.cut, layout.size, layout.parameters) == (176, 176 + personal, shared + personal)
    w = layout.flatten(module)
    assert torch.equal(w[shared:176], torch.zeros(13))
    assert torch.equal(w[176:186], module.head.weight.flatten())
    assert layout.entries[1].offset == 1 and layout.entries[1].size == 135


def test_without_a_personal_part_nothing_is_padded() -> None:
    layout = Layout(Net())
    assert layout.cut == layout.size == layout.parameters == 175


def test_all_may_be_personal() -> None:
    layout = Layout(nn.Linear(3, 2), ("weight", "bias"))
    assert (layout.cut, layout.size) == (0, 8)


def test_frozen_parameters_have_no_place() -> None:
    names = {e.name for e in Layout(Net()).entries}
    assert "frozen" not in names and "conv.weight" in names


def test_the_nearest_prefixes_are_named() -> None:
    with pytest.raises(ValueError, match=r"model.personal: 'haed' must be .* nearest are 'head'"):
        Layout(Net(), ("haed",))
    with pytest.raises(ValueError, match=r"'frozen' must be a trainable parameter's name"):
        Layout(Net(), ("frozen",))


def test_buffers_make_a_vector_of_their_own() -> None:
    """Running mean and variance, but neither the integer batch count nor constants that are not persistent."""
    module, other = Net(), Net()
    layout = Layout(module)
    assert [e.name for e in layout.buffers] == ["norm.running_mean", "norm.running_var"]
    module(images(2, 3, 8, 8))
    vector = layout.flatten_buffers(module)
    assert torch.equal(vector, torch.cat([module.norm.running_mean, module.norm.running_var]))
    layout.load_buffers(other, vector)
    vector.zero_()
    assert torch.equal(other.norm.running_var, module.norm.running_var)
    mlp = initialise(MLP(), MNIST, 10, seed=0)
    assert Layout(mlp).flatten_buffers(mlp).shape == (0,)


def test_a_state_dict_is_in_torch_order_and_loads_into_a_fresh_module(tmp_path: Path) -> None:
    module, fresh = Net(), Net()
    layout = Layout(module, ("head",))
    module(images(2, 3, 8, 8))
    w = layout.flatten(module)
    named = layout.state_dict(w, layout.flatten_buffers(module))
    w.zero_()
    save_file(named, tmp_path / "model.safetensors")
    missing, unexpected = fresh.load_state_dict(named, strict=False)
    assert (set(missing), unexpected) == ({"frozen"}, [])
    assert all(t.is_contiguous() for t in named.values())
    x = images(2, 3, 8, 8)
    torch.testing.assert_close(fresh.eval()(x), module.eval()(x), atol=1e-6, rtol=0)


def test_a_layout_can_be_pickled() -> None:
    layout = Layout(Net(), ("head",))
    assert pickle.loads(pickle.dumps(layout)).entries == layout.entries


@pytest.fixture(scope="module")
def mobilenet() -> nn.Module:
    return initialise(Torchvision(model="mobilenet_v3_small"), (3, 32, 32), 5, seed=1)


@pytest.mark.parametrize("suffix", ["pth", "safetensors"])
def test_weights_are_read_from_a_file_and_a_head_of_another_shape_is_left(
    mobilenet: nn.Module, tmp_path: Path, suffix: str
) -> None:
    state = {name: t.contiguous() for name, t in mobilenet.state_dict().items()}
    state = {name: t for name, t in state.items() if not name.endswith("num_batches_tracked")}
    file = str(tmp_path / f"weights.{suffix}")
    save_file(state, file) if suffix == "safetensors" else torch.save(state, file)
    same = initialise(Torchvision(model="mobilenet_v3_small", weights=file), (3, 32, 32), 5, seed=2)
    assert all(torch.equal(t, same.state_dict()[name]) for name, t in state.items())
    plain = initialise(Torchvision(model="mobilenet_v3_small"), (3, 32, 32), 4, seed=2)
    other = initialise(Torchvision(model="mobilenet_v3_small", weights=file), (3, 32, 32), 4, seed=2)
    assert torch.equal(other.features[0][0].weight, mobilenet.features[0][0].weight)
    assert torch.equal(other.classifier[3].weight, plain.classifier[3].weight)


def test_weights_that_do_not_fit_are_refused_by_name(mobilenet: nn.Module, tmp_path: Path) -> None:
    def load(content: object, name: str = "w.pth") -> None:
        torch.save(content, tmp_path / name)
        initialise(Torchvision(model="mobilenet_v3_small", weights=str(tmp_path / name)), (3, 32, 32), 5, seed=0)

    state = mobilenet.state_dict()
    bias, mean = "classifier.0.bias", "features.0.1.running_mean"
    wrong = {**state, bias: torch.ones(3), "extra": torch.ones(1)}
    del wrong[mean]
    with pytest.raises(
        ValueError, match=rf"must fit .* head \(classifier.3\).* lacks '{mean}'; .* no 'extra'; other shapes '{bias}'"
    ):
        load(wrong)
    with pytest.raises(ValueError, match=r"must hold a state dict, tensors by name, got 'epoch', 'state'"):
        load({"epoch": 3, "state": state})
    with pytest.raises(ValueError, match=r"must hold tensors only"):
        load(mobilenet)
    with pytest.raises(ValueError, match=r"path of a .safetensors, .pth or .pt file that exists, got .*w.bin"):
        load(state, "w.bin")
    with pytest.raises(ValueError, match=r"file that exists, got 'nowhere.pth'; nothing is downloaded"):
        initialise(Torchvision(model="mobilenet_v3_small", weights="nowhere.pth"), (3, 32, 32), 5, seed=0)


def test_grey_images_are_repeated_and_resized_under_the_network_s_own_names() -> None:
    grey = Torchvision(model="mobilenet_v3_small", image_size=40, personal=("classifier",))
    module = initialise(grey, MNIST, 10, seed=0).eval()
    plain = initialise(Torchvision(model="mobilenet_v3_small"), (3, 40, 40), 10, seed=0).eval()
    x = images(2, *MNIST)
    large = nn.functional.interpolate(x, (40, 40), mode="bilinear", antialias=True).repeat(1, 3, 1, 1)
    torch.testing.assert_close(module(x), plain(large), atol=1e-5, rtol=1e-5)
    assert list(module.state_dict()) == list(plain.state_dict())
    assert torch.equal(copy.deepcopy(module)(x), module(x))
    assert Layout(module, grey.personal).cut < Layout(module).size


def test_a_transformer_of_timm_is_made_for_the_images_it_sees() -> None:
    module = initialise(Timm(model="vit_tiny_patch16_224", personal=("head",)), (1, 32, 32), 5, seed=0)
    assert module.pos_embed.shape == (1, 1 + 4, 192)
    assert module(images(2, 1, 32, 32)).shape == (2, 5)
    assert Layout(module, ("head",)).entries[-1].name == "head.bias"


@pytest.mark.parametrize(
    ("model", "shape", "message"),
    [
        (Torchvision(model="resnt18"), CIFAR, r"classifier of torchvision, got 'resnt18'; nearest are 'resnet18'"),
        (Timm(model="vit_tiny_patch16_22"), CIFAR, r"model of timm, got 'vit_tiny_patch16_22'; nearest are 'vit_tiny_"),
        (Timm(model="hf-hub:timm/resnet18"), CIFAR, r"must be a model of timm"),
        (Torchvision(model="mobilenet_v3_small"), (2, 8, 8), r"1 or 3 channels, got 2"),
        (CNN(), (784,), r"model cnn: inputs must be images .* got shape \(784,\); try mlp"),
        (CNN(), (1, 12, 12), r"model cnn: images must be large enough .* got \(1, 12, 12\); use padding: same"),
        (FedFADMMCNN(), (1, 3, 8), r"at least 4 x 4 pixels, got \(1, 3, 8\)"),
        (DEQResNet(), (1, 8, 3), r"model deq_resnet: images must have at least 4 x 4 pixels, got shape \(1, 8, 3\)"),
        (ResNet(), (784,), r"model resnet: inputs must be images .* got shape \(784,\)"),
        (Transformer(), MNIST, r"model transformer: inputs must be text \(tokens,\), got shape \(1, 28, 28\); try cnn"),
        (DEQTransformer(), MNIST, r"model deq_transformer: inputs must be text"),
        (Vector(), (4,), r"rows \[a, s, h\] of 2 size \+ 1 floats, got shape \(4,\)"),
        (Vector(start=(1.0,)), (5,), r"start must have as many values as the data's vectors, which is 2, got 1"),
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


def test_importing_models_does_not_load_torch() -> None:
    code = "import raysim.models, sys; print({'torch', 'torchvision', 'timm', 'peft', 'ray'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
