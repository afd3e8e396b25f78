"""Images as data: the digits, how pixels are scaled, and subsets with as many of each label."""

import numpy as np
import pytest
from data_sets import digits, random_images

from raysim.data.dataset import Split
from raysim.data.sources.images import channel_statistics


def test_channel_statistics_are_those_of_the_scaled_pixels() -> None:
    x = random_images(1500, 4, 3, 3)
    mean, std = channel_statistics(x)
    np.testing.assert_allclose(mean, (x / 255).mean((0, 1, 2)), rtol=1e-12)
    np.testing.assert_allclose(std, (x / 255).std((0, 1, 2)), rtol=1e-12)


def test_a_constant_channel_has_deviation_one() -> None:
    assert channel_statistics(np.full((2, 3, 3, 1), 51, np.uint8)) == ((0.2,), (1.0,))


def test_the_pixels_are_scaled_to_mean_0_and_deviation_1_or_left_from_0_to_1() -> None:
    """The standard scale is that of the training images; either way the stored pixels stay."""
    standard, unit = digits().load(), digits(scale="unit").load()
    np.testing.assert_array_equal(standard.train.x, unit.train.x)
    assert (standard.mean, standard.std) == channel_statistics(standard.train.x)
    assert (unit.mean, unit.std) == ((0.0,), (1.0,))


def test_a_balanced_subset_has_the_first_samples_of_each_label_in_stored_order() -> None:
    whole, part_of_it = digits().load(), digits(train_samples=50, test_samples=20).load()
    for all_samples, used, each in ((whole.train, part_of_it.train, 5), (whole.test, part_of_it.test, 2)):
        rows = np.sort(np.concatenate([np.flatnonzero(all_samples.y == label)[:each] for label in range(10)]))
        np.testing.assert_array_equal(used.x, all_samples.x[rows])
        np.testing.assert_array_equal(used.y, all_samples.y[rows])
    assert (part_of_it.mean, part_of_it.std) == channel_statistics(part_of_it.train.x)
    assert part_of_it.mean != whole.mean


def test_subsets_that_cannot_be_balanced_are_errors() -> None:
    uneven = digits(train_samples=1004, test_samples=3)
    assert uneven.problems() == [
        "`train_samples` must be a multiple of the number of labels, 10, got 1004; take 1000",
        "`test_samples` must be a multiple of the number of labels, 10, got 3; take 10",
    ]
    with pytest.raises(ValueError, match="`train_samples` must be a multiple"):
        uneven.load()
    fewest = int(np.bincount(digits().load().test.y).min())
    assert len(digits(test_samples=fewest * 10).load().test) == fewest * 10
    with pytest.raises(ValueError, match=rf"takes {fewest + 1} samples of each label, got {fewest} of label \d"):
        digits(test_samples=fewest * 10 + 10).load()


def test_the_scenario_chooses_size_and_channels() -> None:
    """As Feddle brings Fashion-MNIST to the form of CIFAR-10; the scale is that of the images as they are then."""
    plain, made = digits().load(), digits(size=32, channels=3).load()
    assert made.train.x.shape == (1438, 32, 32, 3)
    assert made.test.x.shape == (359, 32, 32, 3)
    assert (made.train.x == made.train.x[..., :1]).all()
    assert (made.mean, made.std) == channel_statistics(made.train.x)
    np.testing.assert_array_equal(digits(channels=3).load().train.x[..., 1:2], plain.train.x)


@pytest.mark.parametrize(
    "x", [np.zeros((4, 8, 8), np.uint8), np.zeros((4, 8, 8, 1), np.uint16), np.zeros((4, 8, 8, 1))]
)
def test_images_of_a_users_own_class_must_be_bytes_with_channels(x: np.ndarray) -> None:
    split = Split(x, np.arange(4) % 2)
    with pytest.raises(ValueError, match=rf"images must be uint8 \(n, height, width, channels\), got {x.dtype}"):
        digits().dataset(split, split, 2)
