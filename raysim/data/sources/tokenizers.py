"""How texts become tokens: by bytes, characters, pieces that are learned from the data, or a tokenizer in a folder."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from raysim.data.sources.reading import kept
from raysim.parts.errors import BadValue
from raysim.parts.part import Part, Unit
from results.location import location

SPECIAL = ("<padding>", "<end>", "<mask>", "<unknown>")  # the first tokens of raysim's own tokenizers
PADDING, END, _, UNKNOWN = range(len(SPECIAL))


class Tokens(NamedTuple):
    """A tokenizer that is ready to be used. size: of its vocabulary. A token that it lacks is None."""

    size: int
    encode: Callable[[Sequence[str]], list[np.ndarray]]  # from texts to tokens, int32 (tokens,) each
    padding: int = PADDING
    end: int | None = END  # of a text
    prefix: tuple[int, ...] = ()  # what stands before a text
    suffix: tuple[int, ...] = ()  # what stands after one that is classified
    files: Mapping[str, bytes] = {}  # as transformers loads it from a folder; none where that is not known
    named: bytes | None = None  # what decides the tokens of a text, where they take long to make: they are then kept

    @classmethod
    def of(cls, made: Any, *, split_special: bool, named: bytes | None = None) -> Tokens:
        """Makes one of a tokenizer of the library `tokenizers`, whose first tokens are SPECIAL.

        split_special: whether a text such as "<end>" is split like all others.
        """

        def encode(some: Sequence[str]) -> list[np.ndarray]:
            return [np.array(one.ids, dtype=np.int32) for one in made.encode_batch(list(some))]

        names = dict(zip(("pad_token", "eos_token", "mask_token", "unk_token"), SPECIAL, strict=True))
        config = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **names}
        config["split_special_tokens"] = split_special
        files = {"tokenizer.json": made.to_str(), "tokenizer_config.json": json.dumps(config, indent=2)}
        as_bytes = {name: text.encode() for name, text in files.items()}
        return cls(made.get_vocab_size(), encode, files=as_bytes, named=named)


class Tokenizer(Part):
    """How texts become tokens. A subclass adds its `name`."""

    name: str

    @abstractmethod
    def fitted(self, texts: Sequence[str]) -> Tokens:
        """Returns the tokenizer. texts: of the training samples."""


class Bytes(Tokenizer):
    """A token for each byte of UTF-8, 260 with padding, the end of a text, and two that are not used."""

    name: str = "bytes"

    def fitted(self, texts: Sequence[str]) -> Tokens:
        from tokenizers import Tokenizer as Made
        from tokenizers import decoders, models, pre_tokenizers

        # The letters that stand for bytes: those that can be seen for themselves, and others in order from 256 on.
        seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
        letters = {byte: chr(byte) for byte in seen}
        letters |= {byte: chr(256 + place) for place, byte in enumerate(sorted({*range(256)} - {*seen}))}
        made = Made(models.BPE(_numbered([letters[byte] for byte in range(256)]), []))
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        made.decoder = decoders.ByteLevel()
        return Tokens.of(made, split_special=True)


class Characters(Tokenizer):
    """A token for each character of the training texts, in sorted order, and one for all others."""

    name: str = "characters"

    def fitted(self, texts: Sequence[str]) -> Tokens:
        from tokenizers import Tokenizer as Made
        from tokenizers import decoders, models

        made = Made(models.BPE(_numbered(sorted(set().union(*texts))), [], unk_token=SPECIAL[UNKNOWN]))
        made.decoder = decoders.Fuse()
        return Tokens.of(made, split_special=True)


def _numbered(tokens: Sequence[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate((*SPECIAL, *tokens))}


class BytePairs(Tokenizer):
    """Byte-pair encoding of bytes that is learned from the training texts, by the library `tokenizers`."""

    name: str = "trained"
    vocabulary: Annotated[int, Field(ge=260, examples=[2000]), Unit("tokens")]
    """Number of tokens, at least the 260 of single bytes. Texts that are few give fewer."""

    def fitted(self, texts: Sequence[str]) -> Tokens:
        from tokenizers import Tokenizer as Made
        from tokenizers import __version__

        named = [f"{__version__} {self.vocabulary}".encode(), *(text.encode(errors="replace") for text in texts)]
        learned = kept("tokenizers", named, lambda: np.frombuffer(self._learned(texts).encode(), np.uint8)).tobytes()
        return Tokens.of(Made.from_str(learned.decode()), split_special=False, named=learned)

    def _learned(self, texts: Sequence[str]) -> str:
        """Returns the tokenizer as JSON."""
        from tokenizers import Tokenizer as Made
        from tokenizers import decoders, models, pre_tokenizers, trainers

        made = Made(models.BPE())
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=self.vocabulary,
            special_tokens=list(SPECIAL),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        made.train_from_iterator(texts, trainer)
        return str(made.to_str())


class InFolder(Tokenizer):
    """The tokenizer of a local folder, as `save_pretrained` of transformers writes it. Nothing is downloaded."""

    name: str = "folder"
    path: Annotated[str, Field(examples=["models/gpt2"])]
    """The folder, which holds tokenizer.json or the like. It is often that of the model."""

    def reads(self) -> tuple[str, ...]:
        return (self.path,)

    def fitted(self, texts: Sequence[str]) -> Tokens:
        import transformers

        folder = location(self.path).expanduser()
        try:
            if not folder.is_dir():
                raise FileNotFoundError("there is no such folder")
            made: Any = transformers.AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        except Exception as error:  # transformers raises almost anything
            said = " ".join(str(error).split())[:200]
            text = f"must be a local folder with a tokenizer of transformers, got {str(folder.absolute())!r}: {said}"
            raise BadValue(f"{text}; save it there with save_pretrained; nothing is downloaded", "path") from error
        with TemporaryDirectory() as written:
            made.save_pretrained(written)
            files = {one.name: one.read_bytes() for one in Path(written).iterdir() if one.is_file()}
        padding = made.pad_token_id if made.pad_token_id is not None else made.eos_token_id

        def encode(some: Sequence[str]) -> list[np.ndarray]:
            found = made(list(some), add_special_tokens=False)["input_ids"]
            return [np.array(one, dtype=np.int32) for one in found]

        bare, whole = encode(["a"])[0].tolist(), list(made("a")["input_ids"])
        first = next((at for at in range(len(whole)) if whole[at : at + len(bare)] == bare), 0)
        return Tokens(
            len(made),
            encode,
            padding=PADDING if padding is None else padding,
            end=made.eos_token_id,
            prefix=tuple(whole[:first]),
            suffix=tuple(whole[first + len(bare) :]),
            files=files,
            named=whole_of.to_str().encode() if (whole_of := getattr(made, "backend_tokenizer", None)) else None,
        )


TOKENIZERS: tuple[type[Tokenizer], ...] = (Bytes, Characters, BytePairs, InFolder)
