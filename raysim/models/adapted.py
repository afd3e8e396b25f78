"""A module with adapters, as peft has it: what users get of one that raysim has trained."""

import copy
import warnings
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel
from torch import nn

from raysim.models.part import ModelPart
from raysim.models.pretrained import head_of, save_weights
from raysim.parts.errors import BadValue

BASE = "base"  # the folder of the base, beside its adapters


class Adapted(PeftModel):  # type: ignore[misc]
    """A module with low-rank adapters, which `merge_and_unload` adds to its weights."""

    def save_pretrained(self, save_directory: Any, **keys: Any) -> None:
        """Writes adapters as peft does, with a head that was trained whole, and the base in the folder `base` there,
        unless it is in a folder that the scenario names. adapter_config.json has the base's absolute path.
        """
        config = self.peft_config["default"]
        if not config.base_model_name_or_path:
            folder = Path(save_directory).absolute() / BASE
            folder.mkdir(parents=True, exist_ok=True)
            base: Any = copy.deepcopy(self).unload()
            if hasattr(base, "save_pretrained"):
                base.save_pretrained(folder)
            else:
                save_weights(base, folder / "model.safetensors")
            config.base_model_name_or_path = str(folder)
            try:
                super().save_pretrained(save_directory, save_embedding_layers=False, **keys)
            finally:
                config.base_model_name_or_path = None
        else:
            super().save_pretrained(save_directory, save_embedding_layers=False, **keys)


def adapted(module: nn.Module, part: ModelPart) -> Adapted:
    """Returns a module with adapters, which raysim has made, as one of peft with the same values."""
    known: Any = module
    values, config = dict(module.named_parameters()), known.peft_config["default"]
    lora = {name: value.detach().clone() for name, value in values.items() if ".lora_" in name}
    del known.peft_config  # peft would take the module for one with another adapter
    head = part.embeds_at or head_of(module)
    config.task_type = "CAUSAL_LM" if part.name == "causal_lm" else None  # others would wrap layers of some names
    config.base_model_name_or_path = _base_of(part)
    if head and values.get(f"{head}.weight", torch.empty(0)).requires_grad:
        config.modules_to_save = [f"model.{head}"]  # peft looks for the ends of names, and puts model before all
    with warnings.catch_warnings(action="ignore"):  # of names that transformers will drop, and peft still uses
        made = Adapted(module, config)
    for name, value in lora.items():  # which peft has drawn anew
        module.get_parameter(name).data = value
    made.eval()
    return made


def _base_of(part: ModelPart) -> str | None:
    """Returns the folder of the base, if it is as it was before."""
    path = getattr(part, "path", None)
    return str(Path(path).expanduser().absolute()) if path and not (part.lora and part.lora.merge) else None


def merged(module: nn.Module, part: ModelPart) -> nn.Module:
    """Returns a module in float32 with its adapters added to its weights."""
    if getattr(part, "dtype", "float32") in ("int8", "nf4"):
        raise BadValue("must be float32 or bfloat16 for adapters to be merged exactly; take `--to peft`", "model.dtype")
    found: nn.Module = adapted(module, part).merge_and_unload()
    return found.eval()
