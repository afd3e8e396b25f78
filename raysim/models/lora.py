"""Low-rank adaptation (Hu, Shen, Wallis, Allen-Zhu, Li, Wang, Wang, Chen, ICLR 2022), by peft.

A layer with weight W computes with W + s B A, where A and B have rank r, and s = alpha / r.
"""

import re
import warnings
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Any

from pydantic import Field

from raysim.models.names import is_under, nearest
from raysim.parts.errors import BadValue
from raysim.parts.lazy import nn
from raysim.parts.part import Count, Part, Positive
from raysim.parts.process import quiet
from raysim.terms import TorchModule


class Lora(Part):
    """Low-rank adapters that are trained in place of the weights; only they and the head are trained and sent."""

    rank: Count = 4
    """Rank r of the adapters."""
    alpha: Positive = 8.0
    """The factor alpha: adapters are multiplied by alpha / r."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Probability of dropout of what enters an adapter."""
    targets: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """The layers that get an adapter, dense, convolutional or embedding ones: ends of their names, such as attn.qkv, in
    which * and ? stand for any letters. null: all dense and convolutional ones but the head, a convolution that comes
    first, and those in groups."""
    rslora: bool = False
    """Whether adapters are multiplied by alpha / sqrt(r) instead (Kalajdzievski, arXiv 2312.03732)."""
    dora: bool = False
    """Whether the lengths of the rows of W + s B A are trained apart from their directions (Liu et al., ICML 2024)."""

    merge: bool = False
    """Whether the weights under adapters are among the model's buffers, which are evaluated and saved, so that a server
    can add adapters' products to them, as that of flora does."""

    def adapt(self, module: TorchModule, head: str | None = None) -> None:
        """Adds the adapters to the module, in place, and freezes everything but them and the head.

        An adapter starts at zero, so at first the module computes what it did before. head: the head's name; None: the
        last dense or convolutional layer. It is trained whole, unless it gets an adapter or is the table of a language
        model's tokens. Raises ValueError for a target that is no such layer, or too narrow for the rank.
        """
        with quiet():
            from peft import LoraConfig, inject_adapter_in_model

        from raysim.models.pretrained import head_of

        head = head_of(module) if head is None else head
        layers = adaptable(module)
        chosen = self._chosen(layers, head)
        for name in chosen:
            self._require_fits(name, layers[name])
        config = LoraConfig(
            r=self.rank,
            lora_alpha=self.alpha,
            lora_dropout=self.dropout,
            use_rslora=self.rslora,
            use_dora=self.dora,
            target_modules="|".join(map(re.escape, chosen)),  # a list would also find longer names with these ends
        )
        # peft warns of what it sets itself, such as how a layer's weight is stored.
        with warnings.catch_warnings(action="ignore"):
            inject_adapter_in_model(config, module)
        if head and head not in chosen and not _is_table(module, head):
            module.get_submodule(head).requires_grad_()
        for name in chosen if self.merge else ():
            base: Any = module.get_submodule(f"{name}.base_layer")
            weight = base.weight
            del base.weight
            base.register_buffer("weight", weight.detach())

    def _chosen(self, layers: Mapping[str, TorchModule], head: str) -> list[str]:
        """Returns the names of the layers that get an adapter."""
        if self.targets is None:
            tables = {name for name, layer in layers.items() if isinstance(layer, nn.Embedding)}
            body = [name for name in layers if name not in tables and not is_under(name, (head,))]
            of_input = slice(1 if body and hasattr(layers[body[0]], "groups") else 0, None)
            found = [name for name in body[of_input] if getattr(layers[name], "groups", 1) == 1]
            if not found:
                text = f"needs dense or convolutional layers before the head, {head!r}, and the model has none"
                raise BadValue(f"{text}; leave it out, or take a deeper model", "lora")
            return found
        chosen = set()
        for target in self.targets:
            matched = [name for name in layers if fnmatchcase(f".{name}", f"*.{target}")]
            if not matched:
                text = "must match dense, convolutional or embedding layers of the model by the ends of their names"
                raise BadValue(f"{text}, got {target!r}; nearest are {nearest(target, layers)}", "lora.targets")
            chosen.update(matched)
        return [name for name in layers if name in chosen]

    def _require_fits(self, name: str, layer: Any) -> None:
        """Raises BadValue if the layer's weight has no such rank."""
        linear = isinstance(layer, nn.Linear)  # whose weight may be stored in fewer bits, in another shape
        most = min(layer.in_features, layer.out_features) if linear else min(layer.weight.flatten(1).shape)
        if self.rank > most:
            text = f"must be at most {most}, the rank of the weight of {name!r}, got {self.rank}"
            raise BadValue(f"{text}; lower it, or name wider layers in lora.targets", "lora.rank")
        if self.rank % (groups := getattr(layer, "groups", 1)):
            text = f"must be a multiple of {groups}, the groups of the convolution {name!r}, got {self.rank}"
            raise BadValue(f"{text}; change it, or name other layers in lora.targets", "lora.rank")


def adaptable(module: TorchModule) -> dict[str, TorchModule]:
    """Returns the layers that can have an adapter, by name.

    Not among them are those whose weights are bounded, because a sum would not be, and those in torch's own
    MultiheadAttention, which takes their weights without calling them.
    """
    from transformers.pytorch_utils import Conv1D

    from raysim.models.layers import BoundedLinear

    kinds = (nn.Linear, Conv1D, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Embedding)
    attention = tuple(f"{n}." for n, m in module.named_modules() if isinstance(m, nn.MultiheadAttention))
    return {
        name: layer
        for name, layer in module.named_modules()
        if isinstance(layer, kinds) and not isinstance(layer, BoundedLinear) and not name.startswith(attention)
    }


def _is_table(module: TorchModule, head: str) -> bool:
    """Whether the head is what transformers' language models predict tokens with, often their embedding itself."""
    layer = module.get_submodule(head)
    asked = (getattr(part, "get_output_embeddings", None) for part in module.modules())
    return any(ask() is layer for ask in asked if ask is not None)
