"""What models are tried on."""

import torch

MNIST, CIFAR, TEXT = (1, 28, 28), (3, 32, 32), (80,)


def images(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))
