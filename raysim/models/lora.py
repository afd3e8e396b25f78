"""Low-rank adaptation (Hu, Shen, Wallis, Allen-Zhu, Li, Wang, Wang, Chen, ICLR 2022), by peft."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from raysim.models.part import nearest
from raysim.parts.errors import BadValue
from raysim.parts.part import Count, Part, Positive

if TYPE_CHECKING:
    from torch import nn


class Lora(Part):
    """Low-rank terms that are trained instead of the weights; only they and the head are trained and sent."""

    rank: Count = 4
    """Rank r of the terms."""
    scale: Positive = 8.0
    """The factor alpha; the low-rank terms are multiplied by alpha / r."""
    targets: Annotated[tuple[str, ...], Field(min_length=1)] = ("attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2")
    """Ends of the names of the linear layers that get a term; by default, all of a vision transformer's blocks."""

    def adapt(self, module: nn.Module, head: str) -> None:
        """Adds the terms to the module, in place, and freezes everything but them and the layer `head`.

        A term starts at zero, so at first the module computes what it did before. Raises ValueError for a target that
        is no linear layer.
        """
        from peft import LoraConfig, inject_adapter_in_model
        from torch import nn

        linear = [name for name, layer in module.named_modules() if isinstance(layer, nn.Linear)]
        for target in self.targets:
            if not any(name == target or name.endswith("." + target) for name in linear):
                raise BadValue(
                    f"must be linear layers of the model, or ends of their names, got {target!r}; "
                    f"nearest are {nearest(target, linear)}",
                    "lora.targets",
                )
        config = LoraConfig(r=self.rank, lora_alpha=self.scale, target_modules=list(self.targets))
        inject_adapter_in_model(config, module)
        module.get_submodule(head).requires_grad_()
