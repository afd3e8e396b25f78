"""How texts become tokens: by bytes, characters, pieces that are learned from the data, or a tokenizer in a folder."""

import json
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from raysim.data.cache import kept
from raysim.data.sources.tokens import PADDING, SPECIAL, UNKNOWN, Tokens
from raysim.parts.errors import BadValue
from raysim.parts.part import Part, Unit
from results.location import location


class Tokenizer(Part):
    """How texts become tokens. A subclass adds its `name`."""

    name: str

    @abstractmethod
    def fitted(self, texts: Sequence[str]) -> Tokens:
        """Returns the tokenizer. texts: of the training samples."""


def _files(made: Any, split_special: bool) -> dict[str, bytes]:
    """Returns the files from which transformers loads a tokenizer of the library `tokenizers`.

    split_special: whether a text such as "<end>" is split like all others.
    """
    names = dict(zip(("pad_token", "eos_token", "mask_token", "unk_token"), SPECIAL, strict=True))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **names}
    config["split_special_tokens"] = split_special
    return {"tokenizer.json": made.to_str().encode(), "tokenizer_config.json": json.dumps(config, indent=2).encode()}


class Bytes(Tokenizer):
    """A token for each byte of UTF-8, 260 with padding, the end of a text, the mask, and one that is not used."""

    name: str = "bytes"

    def fitted(self, texts: Sequence[str]) -> Tokens:
        first = len(SPECIAL)

        def encode(some: Sequence[str]) -> list[np.ndarray]:
            return [np.frombuffer(one.encode(errors="replace"), np.uint8).astype(np.int32) + first for one in some]

        def decode(tokens: Sequence[int]) -> str:
            return bytes(token - first for token in tokens if token >= first).decode(errors="replace")

        from tokenizers import Tokenizer as Made
        from tokenizers import decoders, models, pre_tokenizers

        # The letters that stand for bytes: those that can be seen for themselves, and others in order from 256 on.
        seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
        letters = {byte: chr(byte) for byte in seen}
        letters |= {byte: chr(256 + place) for place, byte in enumerate(sorted({*range(256)} - {*seen}))}
        made = Made(models.BPE({**_special(), **{letters[byte]: first + byte for byte in range(256)}}, []))
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        made.decoder = decoders.ByteLevel()
        return Tokens(first + 256, encode, decode, files=_files(made, True))


class Characters(Tokenizer):
    """A token for each character of the training texts, in sorted order, and one for all others."""

    name: str = "characters"

    def fitted(self, texts: Sequence[str]) -> Tokens:
        known, first = sorted(set().union(*texts)), len(SPECIAL)
        points = np.array([ord(one) for one in known], dtype=np.uint32)

        def encode(some: Sequence[str]) -> list[np.ndarray]:
            return [_places(points, one, first) for one in some]

        def decode(tokens: Sequence[int]) -> str:
            return "".join(known[token - first] if token >= first else "" for token in tokens)

        from tokenizers import Regex, decoders, models, pre_tokenizers
        from tokenizers import Tokenizer as Made

        vocabulary = {**_special(), **{one: first + place for place, one in enumerate(known)}}
        made = Made(models.WordLevel(vocabulary, SPECIAL[UNKNOWN]))
        made.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
        made.decoder = decoders.Fuse()
        return Tokens(first + len(known), encode, decode, files=_files(made, True))


def _special() -> dict[str, int]:
    return {name: place for place, name in enumerate(SPECIAL)}


def _places(points: np.ndarray, text: str, first: int) -> np.ndarray:
    asked = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    place = np.searchsorted(points, asked).clip(max=len(points) - 1)
    return np.where(points[place] == asked, place + first, UNKNOWN).astype(np.int32)


class BytePairs(Tokenizer):
    """Byte-pair encoding of bytes that is learned from the training texts, by the library `tokenizers`."""

    name: str = "trained"
    vocabulary: Annotated[int, Field(ge=260, examples=[2000]), Unit("tokens")]
    """Number of tokens, at least the 260 of single bytes. Texts that are few give fewer."""

    def fitted(self, texts: Sequence[str]) -> Tokens:
        from tokenizers import Tokenizer as Made
        from tokenizers import __version__

        named = [f"{__version__} {self.vocabulary}".encode(), *(text.encode(errors="replace") for text in texts)]
        learned = kept("tokenizers", named, lambda: np.frombuffer(self._learned(texts).encode(), np.uint8))
        made = Made.from_str(learned.tobytes().decode())

        def encode(some: Sequence[str]) -> list[np.ndarray]:
            return [np.array(one.ids, dtype=np.int32) for one in made.encode_batch(list(some))]

        size = made.get_vocab_size()
        files = _files(made, False)
        return Tokens(size, encode, lambda tokens: str(made.decode(list(tokens))), files=files, named=learned.tobytes())

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
            lambda tokens: str(made.decode(list(tokens), skip_special_tokens=True)),
            padding=PADDING if padding is None else padding,
            end=made.eos_token_id,
            mask=made.mask_token_id,
            special=tuple(made.all_special_ids),
            prefix=tuple(whole[:first]),
            suffix=tuple(whole[first + len(bare) :]),
            files=files,
            named=whole_of.to_str().encode() if (whole_of := getattr(made, "backend_tokenizer", None)) else None,
        )


TOKENIZERS: tuple[type[Tokenizer], ...] = (Bytes, Characters, BytePairs, InFolder)
