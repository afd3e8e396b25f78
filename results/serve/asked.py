"""What a reader asks of the list: which runs, in which order, and in which groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from results.groups import text
from results.views import View

STATUS, NONE = "status", "-"  # a name beside those of keys, and the value of a key that a run lacks
ALONE, BY_SEED = "", "all keys but seed"  # what groups may be made by, beside single keys
_RESERVED = ("run", "by", "q", "group", "sort", "show")


@dataclass(frozen=True)
class Asked:
    """A query of the list, read."""

    chosen: Sequence[str] = ()
    """Paths of runs; none: all."""
    words: str = ""
    """Texts that a run's path or status contains, or KEY=VALUE."""
    values: Mapping[str, str] = field(default_factory=dict)
    """By key, the value that a run must have."""
    group: str = ALONE
    sort: str = "run"
    """A column, after a minus sign for the largest first."""
    best: bool = False
    """Whether metrics are shown by their best values, rather than by their last ones."""

    @classmethod
    def read(cls, pairs: Iterable[tuple[str, str]]) -> Asked:
        """Reads a query: pairs, in which a name may come several times. Names that are not known here are keys."""
        every = list(pairs)
        single, chosen = dict(every), [value for name, value in every if name == "run"]
        values = {key: value for key, value in single.items() if key not in _RESERVED and value}
        group, sort, best = single.get("group", ALONE), single.get("sort", "run"), single.get("show") == "best"
        return cls(chosen, single.get("q", ""), values, group, sort, best)

    def takes(self, one: View) -> bool:
        """Whether a run is among those that are asked for."""
        if self.chosen:
            return one.path in self.chosen
        alike = all(value_of(one, key) == value for key, value in self.values.items())
        return alike and all(_has(one, word) for word in self.words.split())


def value_of(one: View, key: str) -> str:
    """Returns the value of a run's key, or its status, as a text."""
    if key == STATUS:
        return one.status
    return text(one.keys[key]) if key in one.keys else NONE


def _has(one: View, word: str) -> bool:
    key, equals, value = word.partition("=")
    if not equals:
        return any(word.lower() in part.lower() for part in (one.path, one.status, value_of(one, "name")))
    names = (name for name in (STATUS, *one.keys) if name in (key, f"{key}.name") or name.endswith(f".{key}"))
    return any(value_of(one, name) == value for name in names)
