"""Names of a module's layers and parameters, and the patterns by which scenarios choose some of them."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from raysim.terms import TorchModule


def is_pattern(text: str) -> bool:
    """Whether a text matches names as a pattern, with *, ? or [...], and not as their first components."""
    return any(letter in text for letter in "*?[")


def is_under(name: str, chosen: Iterable[str]) -> bool:
    """Whether a name is chosen by one of several patterns, or of first components: "head" chooses "head.weight", but
    not "header.weight"; "*lora_A*" chooses what has that anywhere in its name."""
    return any(
        fnmatchcase(name, one) if is_pattern(one) else name == one or name.startswith(f"{one}.") for one in chosen
    )


def names_of(module: TorchModule) -> dict[str, list[str]]:
    """Returns all names of each parameter, by its first one. Tied weights have several, and any of them chooses it."""
    found: dict[int, list[str]] = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        found.setdefault(id(parameter), []).append(name)
    return {names[0]: names for names in found.values()}


def nearest(word: str, words: Iterable[str]) -> str:
    """Returns the three words that are spelled most like the given one, for error messages."""
    return ", ".join(repr(w) for w in get_close_matches(word, sorted(words), n=3, cutoff=0))


def nearest_parameter(chosen: str, names: Iterable[str]) -> str:
    """Returns the names of parameters, or their first components, that are spelled most like what matched none."""
    parts = [name.split(".") for name in names]
    firsts = {".".join(p[:k]) for p in parts for k in range(1, len(p) + 1)}
    return nearest(chosen, {".".join(p) for p in parts} if is_pattern(chosen) else firsts)
