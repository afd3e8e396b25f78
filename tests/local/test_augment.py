"""Augmentation of mini-batches: what it does, how it is drawn, and where it is refused."""

from typing import Any

import numpy as np
import pytest
import torch
from conftest import Raw, digits, quadratic
from local_tasks import CPU
from torch import Tensor, nn

import raysim
from raysim.data import Arrays
from raysim.data.dataset import IGNORED
from raysim.data.federation.skew import RotationSkew
from raysim.local.augment import (
    AUGMENTATIONS,
    Augmentation,
    AugmentFunction,
    ColorJitter,
    Crop,
    Cutout,
    Flip,
    MixUp,
    RandAugment,
)
from raysim.local.loss import CrossEntropy
from raysim.local.samples import Augmenter, Pixels
from raysim.runs.inspection import inspect

EVERY: list[Augmentation] = [
    Crop(padding=2),
    Flip(),
    ColorJitter(hue=0.1),
    Cutout(probability=1.0),
    RandAugment(),
    MixUp(),
    AugmentFunction(function="test_augment:darker"),
]


def darker(x: Tensor) -> Tensor:
    return x * torch.rand(len(x)).view(-1, *[1] * (x.ndim - 1))


def images(channels: int = 3) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(6, channels, 8, 8, generator=generator).contiguous(memory_format=torch.channels_last)


def augmented(x: Tensor, *parts: Augmentation, seed: int = 0) -> tuple[Tensor, Tensor]:
    pixels = Pixels((0.0,) * x.shape[1], (1.0,) * x.shape[1], CPU)
    generator = torch.Generator().manual_seed(seed)
    return Augmenter(parts, pixels, 10, lambda: generator)(x, torch.arange(len(x)))


def test_a_crop_is_a_part_of_the_image_with_its_border() -> None:
    x = images()
    padded = torch.nn.functional.pad(x, (2, 2, 2, 2))
    found, y = augmented(x, Crop(padding=2))
    assert y.tolist() == list(range(6))
    places = []
    for image, wide in zip(found, padded, strict=True):
        windows = wide.unfold(1, 8, 1).unfold(2, 8, 1)  # (3, 5, 5, 8, 8)
        hits = [(i, j) for i in range(5) for j in range(5) if windows[:, i, j].equal(image)]
        places += hits[:1]
    assert len(places) == 6
    assert len(set(places)) > 1  # each image has a draw of its own


@pytest.mark.parametrize("probability", [0.0, 1.0])
def test_a_flip_is_the_mirror_image(probability: float) -> None:
    x = images()
    found, _ = augmented(x, Flip(probability=probability))
    assert found.equal(x.flip(3) if probability else x)


@pytest.mark.parametrize("one", [Crop(padding=3), Flip(probability=1.0), Flip()], ids=str)
def test_labels_of_pixels_move_with_the_pixels(one: Augmentation) -> None:
    """An image whose pixels are their labels still is one; a crop's border is black, and its labels do not count."""
    labels = torch.randint(1, 5, (6, 8, 8), generator=torch.Generator().manual_seed(0))
    x, y = one.apply(labels[:, None].float(), labels, 5)
    assert y.shape == labels.shape
    assert not y.equal(labels)
    assert torch.where(y == IGNORED, 0, y).float().equal(x[:, 0])


@pytest.mark.parametrize(
    ("one", "of_each"),
    [
        (Crop(padding=2), lambda v2, side: v2.RandomCrop(side, padding=2)),
        (Flip(), lambda v2, side: v2.RandomHorizontalFlip(0.5)),
        (Cutout(), lambda v2, side: v2.RandomErasing(0.5, scale=(0.02, 0.33))),
    ],
    ids=["crop", "flip", "cutout"],
)
def test_batches_change_as_torchvision_changes_image_by_image(one: Augmentation, of_each: Any) -> None:
    """With the same draws, and the same ones afterwards."""
    from torchvision.transforms import v2

    transform = of_each(v2, (9, 12))
    x = torch.rand(40, 3, 9, 12, generator=torch.Generator().manual_seed(0))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        expected, after = torch.stack([transform(image) for image in x]), torch.rand(1)
        torch.manual_seed(1)
        assert one.apply(x, torch.zeros(40), 10)[0].equal(expected)
        assert torch.rand(1).equal(after)


class Seg(nn.Module):
    def __init__(self, input_shape: tuple[int, ...], classes: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(input_shape[0], 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, classes, 1))

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.layers(x)
        return found


def squares(**local: Any) -> Raw:
    """Images with a bright square, whose pixels have label 1."""
    draw = np.random.default_rng(0)
    x, y = draw.integers(0, 60, (120, 3, 12, 12)).astype(np.uint8), np.zeros((120, 12, 12), np.int64)
    for image, mask, (row, column) in zip(x, y, draw.integers(0, 7, (120, 2)), strict=True):
        image[:, row : row + 5, column : column + 5] = 220
        mask[row : row + 5, column : column + 5] = 1
    data = Arrays.of({"x": x, "y": y}, inputs="images_first", task="classes", clients=4, partition="iid")
    raw = digits(
        model={"name": "module", "module": "test_augment:Seg"}, algorithm="fedavg", world={"dispatch": {"per_round": 4}}
    )
    return raw | {
        "data": data,
        "local": {"lr": 0.2, "batch_size": 16, "epochs": 3, **local},
        "run": {"rounds": 6, "metrics": ["iou"]},
    }


@pytest.mark.parametrize(
    "augment", [[], [Flip(probability=1.0)], [Crop(padding=3)], [Cutout(probability=1.0), ColorJitter()]], ids=str
)
def test_masks_are_learned_from_augmented_images(augment: list[Augmentation], tmp_path: Any) -> None:
    found = raysim.run(squares(augment=augment), out=tmp_path, inline=True).pandas("evaluations")
    last = found[found["subject"] == "global"].groupby("metric")["value"].last()
    assert last["accuracy"] > 0.95 and last["iou"] > 0.85


@pytest.mark.parametrize("name", ["mixup", "rand_augment"])
def test_what_would_move_pixels_alone_is_refused(name: str, tmp_path: Any) -> None:
    raw = squares(augment=[name])
    (problem,) = inspect(raysim.parse_scenario(raw)).problems
    assert str(problem) == (
        f"local.augment: {name} changes images, and these data have a label for each of (12, 12) places, which it "
        "does not change alike; leave it out, or take crop or flip"
    )
    with pytest.raises(raysim.RunFailed, match="does not change alike"):
        raysim.run(raw, out=tmp_path, inline=True)


def test_a_rotation_of_clients_images_is_refused_where_pixels_have_labels() -> None:
    raw = squares()
    (problem,) = inspect(
        raysim.parse_scenario(raw | {"data": raw["data"].model_copy(update={"skew": RotationSkew()})})
    ).problems
    assert "rotation moves pixels, and these data have a label for each" in str(problem)


def test_what_needs_labels_is_refused_without_them(tmp_path: Any) -> None:
    x = np.random.default_rng(0).random((40, 3, 8, 8)).astype(np.float32)
    data = Arrays.of(
        {"x": x, "y": x.mean((1, 2, 3))}, inputs="images_first", task="regression", clients=4, partition="iid"
    )
    group = {"name": "bad", "number": 1, "behaviour": "flip_labels"}
    raw = digits(model="cnn", world__dispatch__per_round=4) | {"data": data}
    for key, more in (
        ("clients.0.behaviour", {"clients": [group]}),
        ("local.augment.0", {"local": {"augment": ["mixup"]}}),
    ):
        (problem,) = inspect(raysim.parse_scenario(raw | more)).problems
        assert problem.path == key and "needs labels, and arrays has none; take another" in problem.text


def test_mixup_mixes_labels_as_it_mixes_inputs() -> None:
    x = images()
    found, y = augmented(x, MixUp(alpha=1.0))
    assert y.shape == (6, 10)
    assert y.sum(1).tolist() == pytest.approx([1.0] * 6)
    assert found.numpy() == pytest.approx(torch.einsum("nk,kchw->nchw", y[:, :6], x).numpy(), abs=1e-6)


def test_a_smoothed_cross_entropy_of_mixed_labels_is_that_of_each_label_by_its_share() -> None:
    x = images()
    _, mixed = augmented(x, MixUp(alpha=1.0))
    loss, outputs = CrossEntropy(label_smoothing=0.1), torch.randn(6, 10)
    each = torch.stack([loss.each(outputs, torch.full((6,), label)) for label in range(10)], 1)
    assert float(loss(outputs, mixed)) == pytest.approx(float((mixed * each).sum(1).mean()), rel=1e-5)
    raysim.parse_scenario(digits(local__augment=["mixup"], run__loss={"name": "cross_entropy", "label_smoothing": 0.1}))


def test_every_part_is_tried() -> None:
    assert {type(one) for one in EVERY} == set(AUGMENTATIONS)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("one", EVERY, ids=str)
def test_the_same_draws_give_the_same_images(one: Augmentation, channels: int) -> None:
    """In the shape and memory format of the images; torch's generator is left as it was."""
    x = images(channels)
    before = torch.get_rng_state()
    (first, y), (again, _), (other, _) = (augmented(x, one, seed=seed) for seed in (0, 0, 1))
    assert torch.get_rng_state().equal(before)
    assert first.equal(again)
    assert first.shape == x.shape
    assert first.is_contiguous(memory_format=torch.channels_last)
    assert not (first.equal(other) and first.equal(x))
    assert len(y) == 6


def test_pixels_are_as_they_are_seen() -> None:
    pixels = Pixels((0.5, 0.4, 0.3), (0.2, 0.3, 0.4), CPU)
    x = images()
    assert pixels.seen(pixels.normalised(x)).numpy() == pytest.approx(x.numpy(), abs=1e-6)


def test_tables_have_functions_of_their_own(tmp_path: Any) -> None:
    raw = quadratic([[1.0]], "fedavg", {"dispatch": {"per_round": 1}}, 1, local__augment=["test_augment:darker"])
    assert raysim.run(raw, out=tmp_path, inline=True).info["status"] == "finished"


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (
            quadratic([[1.0]], "fedavg", {"dispatch": {"per_round": 1}}, 1, local__augment=["crop"]),
            r"local\.augment\.0: crop is for images, and quadratic has none",
        ),
        (digits(local__augment=["mixup"], run__loss="focal"), r"mixup mixes labels, .* got focal"),
        (digits(local__augment=["croop"]), "did you mean 'crop'"),
        (digits(local__precision="tf32"), r"local\.precision: must be float32 or bfloat16 on CPUs"),
        (digits(local__precision="fp16"), r"local\.precision: must be 'float32', 'tf32' or 'bfloat16'"),
    ],
)
def test_what_does_not_fit_is_refused(raw: Raw, problem: str) -> None:
    with pytest.raises(raysim.ScenarioError, match=problem):
        raysim.parse_scenario(raw)


@pytest.mark.parametrize("more", [{}, {"local__optimizer": "adam", "local__lr": 0.001}], ids=str)
def test_bfloat16_rounds_passes_and_nothing_else(more: Raw, tmp_path: Any) -> None:
    plain, halved = (
        raysim.run(digits(local__precision=p, algorithm="fedavg", **more), out=tmp_path, inline=True)
        for p in ("float32", "bfloat16")
    )
    assert halved.digest != plain.digest
    assert halved.vectors()["w"] == pytest.approx(plain.vectors()["w"], abs=0.1)
    assert halved.digest == raysim.run(halved.info["scenario"], out=tmp_path, inline=True).digest
