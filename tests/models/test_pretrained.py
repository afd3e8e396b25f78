"""Networks of torchvision and timm, and weights from files."""

import copy
from pathlib import Path

import pytest
import torch
from model_inputs import MNIST, images
from own_modules import Tied
from safetensors.torch import save_file
from torch import nn

from raysim.models import Timm, Torchvision
from raysim.models.build import initialise
from raysim.models.layout import Layout
from raysim.models.pretrained import load_weights


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
    with pytest.raises(ValueError, match=rf"must fit .* head \(classifier.3\).* lacks '{mean}'; .* no 'extra'; other"):
        load(wrong)
    with pytest.raises(ValueError, match=r"must hold a state dict, tensors by name, got 'epoch', 'state'"):
        load({"epoch": 3, "state": state})
    with pytest.raises(ValueError, match=r"must hold tensors only"):
        load(mobilenet)
    for suffix in ("pth", "safetensors"):
        damaged = tmp_path / f"damaged.{suffix}"
        save_file({"w": torch.ones(9)}, damaged) if suffix == "safetensors" else torch.save(state, damaged)
        for content in (damaged.read_bytes()[:-20], b"junk that is longer than a word"):
            damaged.write_bytes(content)
            text = rf"'{damaged}' must be a whole .{suffix} file of tensors, got one that cannot be read as such; fetch"
            with pytest.raises(ValueError, match=text):
                load_weights(mobilenet, str(damaged))
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


@pytest.mark.parametrize("kept", ["first", "second"])
def test_of_tied_weights_a_file_needs_one_name(kept: str, tmp_path: Path) -> None:
    saved, module = Tied(), Tied()
    dropped = {"first": "second.weight", "second": "first.weight"}[kept]
    save_file({n: t for n, t in saved.state_dict().items() if n != dropped}, tmp_path / "tied.safetensors")
    load_weights(module, str(tmp_path / "tied.safetensors"))
    assert module.second.weight is module.first.weight
    assert module.first.weight.equal(saved.first.weight)
