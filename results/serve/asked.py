"""What a reader asks of the list: which runs, in which order, and in which groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from results.groups import text
from results.serve.seen import Seen

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
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Asked:
        """Reads a query: pairs, in which a name may come several times. Names that are not known here are keys."""
        every = list(pairs)
        single, chosen = dict(every), [value for name, value in every if name == "run"]
        values = {key: value for key, value in single.items() if key not in _RESERVED and value}
        group, sort, best = single.get("group", ALONE), single.get("sort", "run"), single.get("show") == "best"
        return cls(chosen, single.get("q", ""), values, group, sort, best)

    def takes(self, seen: Seen) -> bool:
        """Whether a run is among those that are asked for."""
        if self.chosen:
            return seen.path in self.chosen
        alike = all(told(seen, key) == value for key, value in self.values.items())
        return alike and all(_has(seen, word) for word in self.words.split())

    @property
    def by(self) -> list[str] | None:
        """The keys that make groups; None: all that differ, but the seed."""
        return [self.group] if self.group not in (ALONE, BY_SEED) else None


def told(seen: Seen, key: str) -> str:
    """Returns the value of a run's key, or its status, as a text."""
    if key == STATUS:
        return seen.standing
    return text(seen.keys[key]) if key in seen.keys else NONE


def _has(seen: Seen, word: str) -> bool:
    key, equals, value = word.partition("=")
    if not equals:
        return any(word.lower() in part.lower() for part in (seen.path, seen.standing, told(seen, "name")))
    names = {key, f"{key}.name"}
    found = [name for name in (STATUS, *seen.keys) if name in names or name.endswith(f".{key}")]
    return any(told(seen, name) == value for name in found)
