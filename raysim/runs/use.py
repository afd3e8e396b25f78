"""Uses a trained model on inputs as users have them: what was done to inputs in training is done to these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from raysim.data.dataset import Split
from raysim.data.meaning import InputMeaning, LabelMeaning, Meaning
from raysim.data.named import shape_text
from raysim.data.sources.inputs import scaled_by
from raysim.local.outputs import predicted
from raysim.local.samples import Loader
from raysim.parts.errors import BadValue
from raysim.scenario.load import parse_block
from results import NotARun

if TYPE_CHECKING:
    from results import Run

_BATCH = 250  # samples in a forward pass


def meaning_of(run: Run) -> Meaning:
    """Returns what inputs and labels of a run are, as run.json says. Raises NotARun if it does not, or not right."""
    try:
        return Meaning.read(run.info["data"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        text = f"must say under `data` what inputs and labels were, got {type(error).__name__}: {error}"
        raise NotARun(f"{run.folder / 'run.json'}: {text}; copy it again from where it is whole") from error


def outputs_of(run: Run, module: nn.Module, given: Any) -> np.ndarray:
    """Returns what a module, as raysim has it, gives for inputs as users have them, (n, ...) float32.

    Raises ValueError for inputs that are not as those that trained it.
    """
    inputs = meaning_of(run).inputs
    data = parse_block("data", run.info["scenario"]["data"], str(run.folder / "run.json"))
    stored = data.inputs_of(given, inputs, run.folder)
    if (got := InputMeaning.of(stored).shape) != inputs.shape:
        text = f"inputs must be of shape {shape_text(inputs.shape)} each, as those that trained the model"
        raise BadValue(f"{text}, got {shape_text(got)}")
    x = stored if isinstance(inputs.shape, dict) else scaled_by(stored, inputs)
    split = Split(x, np.zeros(len(x), np.int64))
    pixels = inputs.dtype == "uint8"
    load = Loader(inputs.mean if pixels else (), inputs.std if pixels else (), torch.device("cpu"))
    found = []
    with torch.no_grad():
        for first in range(0, len(x), _BATCH):
            batch, _ = load(split, np.arange(first, min(first + _BATCH, len(x))))
            found.append(module(batch).float())
    return torch.cat(found).numpy()


def labels_of(outputs: np.ndarray, labels: LabelMeaning) -> np.ndarray:
    """Returns what outputs say is predicted: names or numbers of classes, (n, ...); 0 or 1 for each of several labels,
    (n, labels); or targets, (n,) or (n, targets)."""
    if labels.task != "classes":
        found = outputs.reshape(len(outputs), -1)
        if labels.task == "multi_label":
            return (found > 0).astype(np.int64)
        return found[:, 0] if labels.outputs == 1 else found
    logits = predicted(torch.from_numpy(outputs), torch.empty((1,) * (1 + len(labels.places))))
    numbers: np.ndarray = logits.argmax(-1).numpy()
    return np.array(labels.names)[numbers] if labels.names else numbers


class Unscaled(nn.Module):
    """A model that takes inputs before they are scaled: numbers as they were given, or images of bytes.

    Images, (n, channels, height, width), and other inputs have the axes that the model itself takes.
    """

    mean: Tensor  # float64, with the axes of inputs
    std: Tensor

    def __init__(self, module: nn.Module, inputs: InputMeaning) -> None:
        super().__init__()
        self.module, self.pixels = module, inputs.dtype == "uint8"
        shape: Any = inputs.shape
        axes = [1] * (1 + len(shape))
        axes[2 if inputs.kind == "series" else 1] = -1
        self.register_buffer("mean", torch.tensor(inputs.mean or (0.0,), dtype=torch.float64).view(axes))
        self.register_buffer("std", torch.tensor(inputs.std or (1.0,), dtype=torch.float64).view(axes))

    def forward(self, x: Tensor) -> Any:
        """Returns what the model gives for unscaled inputs."""
        values = x.double() / 255 if self.pixels else x.double()
        return self.module(((values - self.mean) / self.std).float())


def raw(module: nn.Module, run: Run) -> nn.Module:
    """Returns a module that takes inputs before they are scaled; the module itself if nothing was scaled."""
    inputs = meaning_of(run).inputs
    return Unscaled(module, inputs).eval() if inputs.mean else module
