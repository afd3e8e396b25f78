"""Language models of Hugging Face's `transformers`: that predict the next token, masked tokens, or a text's label."""

from collections.abc import Iterator
from typing import Any, ClassVar

from pydantic import Field

from raysim.models.transformers_model import TransformersModel
from raysim.parts.errors import Problem
from raysim.parts.own_function import Arguments
from raysim.terms import TorchModule

SMALL = {"model_type": "distilbert", "n_layers": 2, "n_heads": 2, "dim": 16, "hidden_dim": 32}  # an example


class CausalLM(TransformersModel):
    """A language model of transformers, such as GPT-2 or Llama, that predicts the next token."""

    auto: ClassVar[str] = "AutoModelForCausalLM"
    task: ClassVar[str] = "causal"

    name: str = "causal_lm"


class MaskedLM(TransformersModel):
    """A language model of transformers, such as BERT, that predicts tokens which are masked."""

    auto: ClassVar[str] = "AutoModelForMaskedLM"
    task: ClassVar[str] = "masked"

    name: str = "masked_lm"
    config: Arguments | None = Field(default=None, examples=[SMALL])
    """A configuration with random weights, as of `causal_lm`. null: `path` has one."""


class SequenceClassifier(TransformersModel):
    """A classifier of texts of transformers, such as DistilBERT; where the folder has no head, it starts at random.

    A configuration must say its `vocab_size`.
    """

    auto: ClassVar[str] = "AutoModelForSequenceClassification"
    task: ClassVar[str] = "classify"
    wider: ClassVar[bool] = False

    name: str = "sequence_classifier"
    config: Arguments | None = Field(default=None, examples=[{**SMALL, "vocab_size": 260}])
    """A configuration with random weights, as of `causal_lm`, and with its `vocab_size`. null: `path` has one."""

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        if self.config is not None and "vocab_size" not in self.config:
            text = "must say `vocab_size`, for the labels of a classifier do not tell it; add it, such as 260 for bytes"
            yield Problem("model.config", text)

    def build(self, shape: tuple[int, ...], num_classes: int) -> TorchModule:
        from raysim.models.layers import Padded

        module = super().build(shape, num_classes)
        config: Any = module.config
        if isinstance(padding := config.get_text_config().pad_token_id, int):
            module.register_forward_pre_hook(Padded(padding), with_kwargs=True)
        return module

    def _settings(self, num_classes: int) -> dict[str, Any]:
        labels = {"num_labels": num_classes, "problem_type": "single_label_classification"}
        return {**super()._settings(num_classes), **labels}

    def _may_be_new(self, name: str) -> bool:
        return name.startswith(("score.", "classifier.", "pre_classifier.", "bert.pooler.", "pooler."))

    def _require_vocabulary(self, size: int, num_classes: int, key: str) -> None:
        """Requires nothing, for the tokens are not those of the labels."""
