"""Prepares networks of other libraries: weights from a local file, and inputs in the form that they need."""

import pickle
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F

from raysim.parts.errors import BadValue
from results.location import local_copy, location, why


def prepared(module: nn.Module, weights: str | None, channels: int, image_size: int | None) -> nn.Module:
    """Loads a file's weights, if any, into a module for three channels, and lets it take images of one channel too.

    image_size: height and width, in pixels, that images are resized to; None: not resized. Raises ValueError for other
    numbers of channels, and as `load_weights` does.
    """
    if channels not in (1, 3):
        raise BadValue(f"pretrained architectures take images with 1 or 3 channels, got {channels}; use cnn")
    if weights is not None:
        load_weights(module, weights)
    if channels == 1 or image_size is not None:
        module.register_forward_pre_hook(Prepare(image_size))
    return module


@dataclass(frozen=True)
class Prepare:
    """A forward pre-hook for networks that need three channels, and maybe another size of images.

    It is a hook because a wrapping module would put its own name before those of the network's parameters.
    """

    size: int | None  # height and width in pixels; None: images are not resized

    def __call__(self, module: nn.Module, args: tuple[Tensor]) -> tuple[Tensor]:
        (x,) = args
        if self.size is not None and x.shape[-2:] != (self.size, self.size):
            x = F.interpolate(x, (self.size, self.size), mode="bilinear", antialias=True)
        return (x.expand(-1, 3, -1, -1),)


def head_of(module: nn.Module) -> str:
    """Returns the name of the head, which is the last dense or convolutional layer; empty if there is none."""
    names: list[str] = [name for name, m in module.named_modules() if isinstance(m, nn.Linear | nn.Conv2d)]
    return names[-1] if names else ""


def load_weights(module: nn.Module, path: str) -> None:
    """Copies a file's tensors into the module: .safetensors, or .pth or .pt with a state dict.

    The head keeps its initial values if the file has it in another shape or not at all. BatchNorm's batch counts may be
    missing, and all but one of the names of a tensor that has several (tied weights). Raises ValueError for any other
    difference, naming the keys, and for a file that is missing or cannot be read.
    """
    found, expected = _read(path), module.state_dict(keep_vars=True)
    first: dict[int, str] = {}  # the first name of each tensor in the file
    for name, tensor in expected.items():
        if name in found:
            first.setdefault(id(tensor), name)
    found |= {name: found[first[id(t)]] for name, t in expected.items() if name not in found and id(t) in first}
    head = head_of(module) + "."
    if any(found[k].shape != v.shape for k, v in expected.items() if k.startswith(head) and k in found):
        found = {k: v for k, v in found.items() if not k.startswith(head)}
    needed = {k for k in expected if not k.startswith(head) and not k.endswith("num_batches_tracked")}
    differences = {
        "the file lacks": needed - found.keys(),
        "the model has no": found.keys() - expected.keys(),
        "other shapes": {k for k in found.keys() & expected.keys() if found[k].shape != expected[k].shape},
    }
    if any(differences.values()):
        text = "; ".join(f"{what} {_some(keys)}" for what, keys in differences.items() if keys)
        must = f"must fit the model in all but its head ({head[:-1]}), got differences"
        raise BadValue(f"{path!r} {must}: {text}", "weights")
    module.load_state_dict(found, strict=False)


def save_weights(module: nn.Module, path: Path) -> None:
    """Writes a module's state dict as .safetensors, in torch's standard layout. Tied weights are there by each name."""
    named = {name: one for name, one in module.state_dict().items() if one.layout == torch.strided}
    save_file({name: one.clone(memory_format=torch.contiguous_format) for name, one in named.items()}, path)


def _read(path: str) -> dict[str, Tensor]:
    file = location(path)
    if file.suffix not in {".safetensors", ".pth", ".pt"} or not file.is_file():
        raise BadValue(
            f"must be the path of a .safetensors, .pth or .pt file that exists, got {path!r}; nothing is downloaded",
            "weights",
        )
    try:
        with local_copy(file) as copy:
            if file.suffix == ".safetensors":
                from safetensors.torch import load_file

                return dict(load_file(copy))
            found = torch.load(copy, map_location="cpu", weights_only=True)  # it runs no code that the file names
    except pickle.UnpicklingError as error:
        raise BadValue(f"{path!r} must hold tensors only; save module.state_dict()", "weights") from error
    except Exception as error:  # damaged files raise almost anything, such as KeyError
        got = why(error) if isinstance(error, OSError) else "one that cannot be read as such"
        must = f"must be a whole {file.suffix} file of tensors"
        raise BadValue(f"{path!r} {must}, got {got}; fetch or save it again", "weights") from error
    if not isinstance(found, dict) or not all(isinstance(v, Tensor) for v in found.values()):
        what = _some(set(found)) if isinstance(found, dict) else type(found).__name__
        raise BadValue(f"{path!r} must hold a state dict, tensors by name, got {what}; save only that", "weights")
    return found


def _some(keys: set[str]) -> str:
    shown = ", ".join(repr(k) for k in sorted(keys)[:5])
    return shown if len(keys) <= 5 else f"{shown} and {len(keys) - 5} more"
