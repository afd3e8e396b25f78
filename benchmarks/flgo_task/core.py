"""The data of the jobs as FLGo wants them: it looks for these two classes in the module `core` of a task."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from flgo.benchmark.base import BasicTaskPipe
from flgo.benchmark.toolkits.cv.classification import GeneralCalculator
from jobs import JOBS, load, normalize, split
from torch import Tensor
from torch.utils.data import TensorDataset


@dataclass
class Batches:
    """Batches of samples in memory, in a new order each time; a PyTorch DataLoader takes longer."""

    samples: TensorDataset
    size: int

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        for batch in torch.randperm(len(self.samples)).split(self.size):
            yield self.samples[batch]


class TaskCalculator(GeneralCalculator):
    """FLGo's own losses, accuracy and optimizers, on batches from memory."""

    def get_dataloader(self, dataset: TensorDataset, batch_size: int = 64, **ignored: Any) -> Batches:
        return Batches(dataset, batch_size)


class TaskPipe(BasicTaskPipe):
    """Gives each client its samples, and the server all test images."""

    def load_data(self, option: dict[str, Any]) -> dict[str, dict[str, TensorDataset | None]]:
        job, data = JOBS[option["job"]], load(Path(option["root"]))
        images = torch.from_numpy(normalize(data.train_images))
        labels = torch.from_numpy(data.train_labels.astype(np.int64))
        test = torch.from_numpy(normalize(data.test_images)), torch.from_numpy(data.test_labels.astype(np.int64))
        shares = {
            name: {"train": TensorDataset(images[own], labels[own]), "val": None}
            for name, own in zip(self.feddata["client_names"], split(job), strict=True)
        }
        return {"server": {"test": TensorDataset(*test), "val": None}, **shares}
