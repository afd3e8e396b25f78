"""Writes a trained model for other programs, together with what must be done to its inputs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from raysim.data.meaning import InputMeaning
from raysim.data.sources.text import TOKENIZER
from raysim.models.language_models import TransformersModel
from raysim.models.library import of_library, plain
from raysim.models.part import ModelPart
from raysim.models.pretrained import save_weights
from raysim.parts.errors import BadValue
from raysim.runs.use import meaning_of, raw
from results.disk import writing
from results.distribution import DISTRIBUTION
from results.location import local_copy

if TYPE_CHECKING:
    from results import Run


def export(run: Run, module: nn.Module, part: ModelPart, to: str, folder: Path) -> Path:
    """Writes a module that raysim has made into a folder, and returns the folder. See `Result.export`."""
    if to not in FORMATS:
        raise BadValue(f"must be one of {', '.join(FORMATS)}, got {to!r}", "to")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    meaning = meaning_of(run)
    FORMATS[to](run, module, part, folder)
    text = json.dumps({"run": run.info["run"], "model": run.info["scenario"]["model"], **meaning.plain}, indent=2)
    (folder / "inputs.json").write_text(text)
    return folder


def _hf(run: Run, module: nn.Module, part: ModelPart, folder: Path) -> None:
    if not isinstance(part, TransformersModel):
        raise BadValue(f"must be safetensors for {part.name}, which is no model of transformers, got hf", "to")
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
    made.save_pretrained(folder)
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
    program = torch.onnx.export(_exported(run, module, part), dynamo=True, verbose=False)
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
        with torch.no_grad():
            return torch.export.export(whole, args, examples, dynamic_shapes=shapes, strict=False)
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
