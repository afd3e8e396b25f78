"""Language models of Hugging Face's `transformers`, from a configuration or from a local folder."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import Field

from raysim.models.names import nearest
from raysim.models.part import ModelPart, share_of
from raysim.parts.errors import BadValue, Problem
from raysim.parts.lazy import torch
from raysim.parts.own_function import Arguments
from raysim.parts.process import quiet
from raysim.terms import Inputs, TorchModule
from results.location import location

GPT = {"model_type": "gpt2", "n_layer": 2, "n_head": 2, "n_embd": 16}  # examples
BERT = {"model_type": "distilbert", "n_layers": 2, "n_heads": 2, "dim": 16, "hidden_dim": 32}
_POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx")


class TransformersModel(ModelPart):
    """The base of models of `transformers`. They take tokens, or `input_ids` with an `attention_mask`."""

    takes: ClassVar[tuple[Inputs, ...]] = ("text", "named")
    channels_last: ClassVar[bool] = False
    wider: ClassVar[bool] = True
    auto: ClassVar[str]
    """The class of transformers that makes them."""
    task: ClassVar[str]
    """The task of `data: {name: text}` that it is for."""
    new: ClassVar[tuple[str, ...]] = ()
    """First letters of parameters that a folder need not have, which then start at random."""

    name: str
    config: Arguments | None = Field(default=None, examples=[GPT])
    """A configuration with random weights: `model_type`, such as gpt2, llama, bert or distilbert, and the keys of that
    type's configuration in transformers. Its vocabulary, where it says none, is that of the data's tokens. null: `path`
    has one."""
    path: str | None = None
    """A local folder with `config.json` and weights in safetensors, as `save_pretrained` writes it. null: `config`."""
    dtype: Literal["float32", "bfloat16", "int8", "nf4"] = "float32"
    """What frozen weights are kept in; trained ones are float32. int8, nf4: dense layers but the head in 8 bits, or in
    4-bit NormalFloats (Dettmers et al., QLoRA, NeurIPS 2023), and the rest in bfloat16. They are for `lora` without
    `merge`, and need the package `bitsandbytes` (`pip install "raysim-fl[quantised]"`)."""
    attention: Literal["eager", "sdpa"] = "eager"
    """How attention is computed. eager: so that gradients are the same whenever they are taken. sdpa: by torch's fused
    kernels, which take less time and memory, and on some devices round anew each time."""
    gradient_checkpointing: bool = False
    """Whether activations are computed again in the backward pass, which saves memory and takes a third more time."""

    def problems(self) -> Iterator[Problem]:
        if (self.config is None) == (self.path is None):
            yield Problem("model", "must have exactly one of `config` and `path`; give a configuration, or a folder")
        elif self.config is not None and not isinstance(self.config.get("model_type"), str):
            yield Problem("model.config", "must have a `model_type`, such as gpt2, llama, bert or distilbert; add it")
        if self.dtype == "bfloat16" and self.lora is None and not self.frozen:
            text = "must be float32 where all weights are trained, got bfloat16; freeze some, with lora or frozen"
            yield Problem("model.dtype", text)
        if self.dtype in ("int8", "nf4") and (self.lora is None or self.lora.merge):
            text = f"must be float32 or bfloat16 unless lora is set, and its merge is not, got {self.dtype}"
            yield Problem("model.dtype", f"{text}; add lora, or take out merge")

    def build(self, shape: tuple[int, ...], num_classes: int) -> TorchModule:
        """Builds the model of transformers, with its parameter names; it returns the logits alone.

        shape: (tokens,), or {"input_ids": (tokens,), ...}. num_classes: the vocabulary, or the number of labels. Raises
        ValueError if the folder has no such model, or the model cannot take such inputs.
        """
        from raysim.models.build import quantise
        from raysim.models.pretrained import head_of

        length = _length(shape)
        try:
            with quiet():
                module = self._made(num_classes) if self.path is None else self._loaded(num_classes)
        except BadValue:
            raise
        except Exception as error:  # transformers checks by any kind of error
            text = f"must give a {self.name} of transformers, got: {' '.join(str(error).split())[:300]}"
            raise BadValue(text, self._key) from error
        self._require_fits(module.config.get_text_config(), length, num_classes)
        if self.gradient_checkpointing:
            # transformers 5 has a new name for it, and warns of the old one.
            newer = getattr(module, "activation_checkpointing_enable", None)
            (newer or module.gradient_checkpointing_enable)({"use_reentrant": False})
        module.register_forward_hook(logits)
        # A folder may hold weights in any type.
        module = module.to(torch.float32 if self.dtype == "float32" else torch.bfloat16)
        if self.dtype in ("int8", "nf4"):
            quantise(module, self.dtype, module.get_submodule(head_of(module)))
        made: TorchModule = module.train()
        return made

    def build_at(self, width: float, shape: tuple[int, ...], num_classes: int) -> TorchModule:
        """Builds the model with heads of fewer units, as many as before, and narrower dense layers."""
        built: Any = self.build(shape, num_classes)
        config = built.config.get_text_config()
        names, heads = config.attribute_map, config.num_attention_heads
        narrow = {names.get("hidden_size", "hidden_size"): heads * share_of(config.hidden_size // heads, width)}
        given = self.config or config.to_diff_dict()
        for key in ("head_dim", "intermediate_size", "n_inner", "hidden_dim", "ffn_dim"):
            if isinstance(units := given.get(key), int):
                narrow[key] = share_of(units, width)
        return self.model_copy(update={"path": None, "config": {**given, **narrow}}).build(shape, num_classes)

    @property
    def _key(self) -> str:
        return "config" if self.path is None else "path"

    def _settings(self, num_classes: int) -> dict[str, Any]:
        """What the configuration has in any case."""
        return {"use_cache": False, "attn_implementation": self.attention}

    def _made(self, num_classes: int) -> Any:
        """Returns the model of `config`, which has raysim's padding, 0, and no tokens with another meaning."""
        import transformers

        usual = {"vocab_size": num_classes, "pad_token_id": 0, "bos_token_id": None, "eos_token_id": None}
        config = transformers.AutoConfig.for_model(**usual | (self.config or {}) | self._settings(num_classes))
        known = {*type(config)().to_dict(), *config.attribute_map}
        for key in self.config or {}:
            if key not in known:  # transformers would keep it, and never use it
                text = f"must have keys of {type(config).__name__}, got {key!r}"
                raise BadValue(f"{text}; nearest are {nearest(key, known)}", "config")
        return getattr(transformers, self.auto).from_config(config, attn_implementation=self.attention)

    def _loaded(self, num_classes: int) -> Any:
        """Returns the model of `path`. Raises ValueError if the folder lacks a part of it."""
        import transformers

        folder = location(self.path or "").expanduser()
        lacking = [name for name in ("config.json", "*.safetensors") if not list(folder.glob(name))]
        if lacking:
            got = f"{str(folder.absolute())!r}, which {f'has no {lacking[0]}' if folder.is_dir() else 'is no folder'}"
            cure = "save the model there with save_pretrained, or start where `path` leads to it; nothing is downloaded"
            raise BadValue(f"must be a local folder with config.json and *.safetensors, got {got}; {cure}", "path")
        config = transformers.AutoConfig.from_pretrained(str(folder), local_files_only=True)
        if getattr(config, "quantization_config", None) is not None:
            raise BadValue("must hold no weights of fewer bits; save them in bfloat16, and set `dtype`", "path")
        for name, value in self._settings(num_classes).items():
            setattr(config, name, value)
        if config.get_text_config().pad_token_id is None:
            config.pad_token_id = 0 if not isinstance(config.eos_token_id, int) else config.eos_token_id
        module, report = getattr(transformers, self.auto).from_pretrained(
            str(folder),
            config=config,
            local_files_only=True,
            use_safetensors=True,
            attn_implementation=self.attention,
            output_loading_info=True,
        )
        if missing := sorted(name for name in report["missing_keys"] if not name.startswith(self.new)):
            some = ", ".join(missing[:3])
            raise BadValue(f"must have all weights of the model, got none of {some}; save the whole model", "path")
        return module

    def _require_fits(self, config: Any, length: int, num_classes: int) -> None:
        limits = (getattr(config, name, None) for name in _POSITIONS)
        most = next((limit for limit in limits if isinstance(limit, int)), None)
        if most is not None and length > most:
            text = f"must have a position for each of {length} tokens of a sequence, got {most}"
            raise BadValue(f"{text}; lower data.length, or take a model with more positions", self._key)
        if self.wider and config.vocab_size < num_classes:
            text = f"must embed each of the {num_classes} tokens of the data, got a vocabulary of {config.vocab_size}"
            raise BadValue(f"{text}; take the model's own tokenizer, or a larger vocab_size", self._key)


class CausalLM(TransformersModel):
    """A language model of transformers, such as GPT-2 or Llama, that predicts the next token."""

    auto: ClassVar[str] = "AutoModelForCausalLM"
    task: ClassVar[str] = "causal"

    name: str = "causal_lm"


class SequenceClassifier(TransformersModel):
    """A classifier of texts of transformers, such as DistilBERT; where the folder has no head, it starts at random.

    A configuration must say its `vocab_size`.
    """

    auto: ClassVar[str] = "AutoModelForSequenceClassification"
    task: ClassVar[str] = "classify"
    wider: ClassVar[bool] = False
    new: ClassVar[tuple[str, ...]] = ("score.", "classifier.", "pre_classifier.", "bert.pooler.", "pooler.")

    name: str = "sequence_classifier"
    config: Arguments | None = Field(default=None, examples=[{**BERT, "vocab_size": 260}])
    """A configuration with random weights, as of `causal_lm`, and with its `vocab_size`. null: `path` has one."""

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        if self.config is not None and "vocab_size" not in self.config:
            text = "must have `vocab_size`, which the labels of a classifier do not show; add it, such as 260 for bytes"
            yield Problem("model.config", text)

    def build(self, shape: tuple[int, ...], num_classes: int) -> TorchModule:
        module = super().build(shape, num_classes)
        config: Any = module.config
        if isinstance(padding := config.get_text_config().pad_token_id, int):
            module.register_forward_pre_hook(Padded(padding), with_kwargs=True)
        return module

    def _settings(self, num_classes: int) -> dict[str, Any]:
        labels = {"num_labels": num_classes, "problem_type": "single_label_classification"}
        return {**super()._settings(num_classes), **labels}


def _length(shape: Any) -> int:
    """Returns the number of tokens of an input. Raises ValueError unless inputs are text."""
    tokens = shape.get("input_ids") if isinstance(shape, dict) else shape
    if not isinstance(tokens, tuple) or len(tokens) != 1:
        must = "inputs must be tokens (length,), or named arrays with `input_ids`"
        raise BadValue(f"{must}, got {shape!r}; take the data source `text`, or inputs of tokens")
    return int(tokens[0])


def logits(module: TorchModule, args: Any, output: Any) -> Any:
    """A forward hook that lets a model of transformers return the logits alone, as float32."""
    return output.logits.float() if hasattr(output, "logits") else output


@dataclass(frozen=True)
class Padded:
    """A forward pre-hook that puts a model's own token for padding where the mask is zero: those that classify by the
    last token look for it there."""

    token: int

    def __call__(self, module: TorchModule, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        if (mask := kwargs.get("attention_mask")) is not None and "input_ids" in kwargs:
            kwargs = {**kwargs, "input_ids": kwargs["input_ids"].masked_fill(mask == 0, self.token)}
        return args, kwargs
