from torch import nn


def normed(input_shape, classes):
    channels, height, width = input_shape
    return nn.Sequential(
        nn.Conv2d(channels, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(4 * height * width, 64),
        nn.BatchNorm1d(64),
        nn.ReLU(),
        nn.Linear(64, classes),
    )
