"""Uses a trained model on inputs as users have them, to which is done what was done to inputs in training; and writes
it for other programs, together with that."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from raysim.data.dataset import Split
from raysim.data.meaning import InputMeaning, LabelMeaning, Meaning, shape_text
from raysim.data.sources.inputs import scaled_by
from raysim.data.sources.text import TOKENIZER
from raysim.local.outputs import predicted
from raysim.local.samples import Loader
from raysim.models.exits import Exits
from raysim.models.language_models import TransformersModel
from raysim.models.library import of_library, plain
from raysim.models.part import ModelPart
from raysim.models.pretrained import save_weights
from raysim.parts.errors import BadValue
from raysim.parts.process import quiet
from raysim.scenario.load import parse_block
from results import NotARun
from results.disk import writing
from results.location import local_copy
from results.texts import DISTRIBUTION

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


def export(run: Run, module: nn.Module, part: ModelPart, to: str, folder: Path) -> Path:
    """Writes a module that raysim has made into a folder, and returns the folder. See `Result.export`."""
    if isinstance(module, Exits) and to in ("hf", "peft"):
        raise BadValue(f"must be another one for a model with exits, which is raysim's own, got {to}; try onnx", "to")
    if to not in FORMATS:
        raise BadValue(f"must be one of {', '.join(FORMATS)}, got {to!r}", "to")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    meaning = meaning_of(run)
    with quiet() if isinstance(part, TransformersModel) or part.lora else nullcontext():
        FORMATS[to](run, module, part, folder)
    text = json.dumps({"run": run.info["run"], "model": run.info["scenario"]["model"], **meaning.plain}, indent=2)
    (folder / "inputs.json").write_text(text)
    return folder


def _hf(run: Run, module: nn.Module, part: ModelPart, folder: Path) -> None:
    if not isinstance(part, TransformersModel):
        raise BadValue(f"must be safetensors for {part.name}, which is not a model of transformers, got hf", "to")
    known: Any = of_library(plain(module, part), part.model_copy(update={"lora": None}))
    known.config.dtype = torch.float32
    _tokenizer(run, folder)
    if (config := folder / "tokenizer_config.json").is_file() and known.can_generate():
        from transformers import AutoTokenizer

        tokens: Any = AutoTokenizer.from_pretrained(config.parent, local_files_only=True)
        for name in ("eos_token_id", "pad_token_id"):
            if getattr(known.generation_config, name) is None:
                setattr(known.generation_config, name, getattr(tokens, name))
    known.save_pretrained(folder)


def _peft(run: Run, module: nn.Module, part: ModelPart, folder: Path) -> None:
    if part.lora is None:
        raise BadValue("must be hf or safetensors without model.lora, got peft", "to")
    made: Any = of_library(module, part)
    card = folder / "README.md"
    had_card = card.exists()
    made.save_pretrained(folder)
    if not had_card:
        card.unlink(missing_ok=True)  # a form that peft leaves to be filled in
    _tokenizer(run, folder)


def _safetensors(run: Run, module: nn.Module, part: ModelPart, folder: Path) -> None:
    save_weights(plain(module, part), folder / "model.safetensors")


def _torch_export(run: Run, module: nn.Module, part: ModelPart, folder: Path) -> None:
    torch.export.save(_exported(run, module, part), folder / "model.pt2")


def _onnx(run: Run, module: nn.Module, part: ModelPart, folder: Path) -> None:
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise BadValue(f"needs the package {error.name}; pip install '{DISTRIBUTION}[onnx]'", "to") from error
    shape = meaning_of(run).inputs.shape
    named = ({0: "batch"},) * (len(shape) if isinstance(shape, dict) else 1)
    with warnings.catch_warnings():
        # That names of axes are left out: the batch of further inputs is that of the first.
        warnings.filterwarnings("ignore", category=UserWarning, module=r"torch\.onnx\.")
        program = torch.onnx.export(_exported(run, module, part), dynamo=True, verbose=False, dynamic_shapes=named)
    assert program is not None
    program.save(folder / "model.onnx")


def _exported(run: Run, module: nn.Module, part: ModelPart) -> torch.export.ExportedProgram:
    """Returns the program of a model that takes unscaled inputs, in batches of any size."""
    whole, inputs = raw(plain(module, part), run), meaning_of(run).inputs
    named = isinstance(inputs.shape, dict)
    examples = {name: _example(shape, inputs) for name, shape in inputs.shape.items()} if named else {}  # type: ignore[union-attr]
    any_size = {0: torch.export.Dim.AUTO}
    args = () if named else (_example(inputs.shape, inputs),)
    shapes: Any = dict.fromkeys(examples, any_size) if named else (any_size,)
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=UserWarning, module=r"torch\._dynamo\.")  # exits keep logits
            # A shallow model ends its forward pass by an exception, which only the strict mode follows.
            strict = isinstance(module, Exits)
            return torch.export.export(whole, args, examples, dynamic_shapes=shapes, strict=strict)
    except Exception as error:  # of the compiler, which raises almost anything
        said = " ".join(str(error).split())[:300]
        raise BadValue(f"torch.export must follow {part.name}, got {type(error).__name__}: {said}", "to") from error


def _example(shape: Any, inputs: InputMeaning) -> Tensor:
    floats = inputs.dtype == "float32"
    kind = torch.uint8 if inputs.dtype == "uint8" else torch.float32 if floats else torch.int64
    return torch.ones((2, *shape), dtype=kind)


def _tokenizer(run: Run, folder: Path) -> None:
    """Copies the run's tokenizer, if it has one."""
    if (run.folder / TOKENIZER).is_dir():
        with local_copy(run.folder / TOKENIZER) as copy:
            shutil.copytree(copy, folder, dirs_exist_ok=True)


FORMATS: dict[str, Callable[[Run, nn.Module, ModelPart, Path], None]] = {
    "hf": _hf,
    "peft": _peft,
    "safetensors": _safetensors,
    "onnx": _onnx,
    "torch-export": _torch_export,
}
