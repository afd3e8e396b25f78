"""What has changed between two parts of a run, or between a run and its fork, that is not in their scenarios."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from raysim.scenario.dependencies import changes
from raysim.scenario.resources import computes_on

Info = dict[str, Any]  # the content of a run.json


class CodeChanges(NamedTuple):
    """Changes in words, such as "module mine changed"."""

    of_bits: list[str]  # what bits may depend on: modules, data, versions, devices
    further: list[str]  # Ray's version and the state of git; what that means for own modules is among the others

    def told(self, what: str) -> list[str]:
        """Returns a sentence with all changes; none if there are none. what: was done after them."""
        found = [*self.of_bits, *self.further]
        return [f"{what} after a change: {', '.join(found)}"] if found else []


def code_changes(before: Info, now: Info) -> CodeChanges:
    """Returns what has changed since an earlier run.json."""
    known = before.get("depends_on") or {}
    of_bits = [*changes({**known, "mixed": []}, now["depends_on"])] if known else ["unknown"]
    of_bits += [*_versions(before, now, "python", "numpy", "torch"), *_devices(before, now)]
    further = [*_versions(before, now, "ray")]
    if "git" in before and (old := _git(before)) != (new := _git(now)):
        further.append(f"git {old} -> {new}")
    return CodeChanges(of_bits, further)


def _versions(before: Info, now: Info, *names: str) -> Iterator[str]:
    old, new = before.get("versions") or {}, now["versions"]
    for name in names:
        if None not in (old.get(name), new[name]) and old[name] != new[name]:
            yield f"{name} {old[name]} -> {new[name]}"


def _devices(before: Info, now: Info) -> Iterator[str]:
    asked, asks = (one["scenario"]["resources"] for one in (before, now))
    kinds, others = computes_on(asked), computes_on(asks)
    for key in sorted(kinds.keys() | others.keys()):
        if kinds.get(key) != others.get(key):
            yield f"resources.{key} {asked.get(key)} -> {asks.get(key)}"


def _git(info: Info) -> str:
    """Returns the state of the working tree in words."""
    git = info["git"]
    if not git:
        return "none"
    commit = f"commit {git['commit'][:10]}" if git.get("commit") else "no commit"
    return commit if git.get("clean") else f"{commit} with changes"
