"""The things beside the scenario that results depend on: raysim's version, the user's own modules, and data files.

They are kept in run.json, so that a sweep knows which runs are out of date, and why.
"""

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from raysim.parts.own_code import Sources, parts_in, sources_in
from raysim.scenario.fingerprints import fingerprint
from raysim.scenario.resources import computes_on
from raysim.scenario.schema import Scenario
from raysim.version import __version__

Dependencies = dict[str, Any]
Info = dict[str, Any]  # the content of a run.json


def depends_on(scenario: Scenario) -> Dependencies:
    """Returns raysim's version, and fingerprints of own modules and of files by name; null if there is none.

    Reads all files that the parts name, which may take long.
    """
    of_run = scenario.run.model_copy(update={"log": (), "observers": ()})  # which change no results
    scenario = scenario.model_copy(update={"run": of_run})
    files = sorted({str(path) for part in parts_in(scenario) for path in part.reads()})
    return {
        "raysim": __version__,
        "modules": {module: hash_of(sources) for module, sources in sources_in(scenario).items()},
        "files": {path: fingerprint(path) for path in files},
    }


def hash_of(sources: Sources) -> str | None:
    """Returns a hash of the files that a module is made of; None if they are not known."""
    hashed = hashlib.sha256()
    for path, source in sources.items():
        hashed.update(path.as_posix().encode() + b"\0" + hashlib.sha256(source.content).digest())
    return hashed.hexdigest()[:16] if sources else None


def changes(before: Dependencies, now: Dependencies) -> Iterator[str]:
    """Yields what has changed since a run, and on its way.

    A file that is missing, or was missing before, counts as unchanged.
    """
    if not before:
        yield "what it depended on is not known"
        return
    yield from before.get("mixed", ())
    if before["raysim"] != now["raysim"]:
        yield f"raysim {before['raysim']} -> {now['raysim']}"
    known = before["modules"]
    for module, found in now["modules"].items():
        if found is None:
            yield f"the source of module {module} cannot be read"
        elif known.get(module) != found:
            yield f"module {module} changed"
    known = before["files"]
    for file, found in now["files"].items():
        if None not in (found, known.get(file)) and known[file] != found:
            yield f"data file {file} changed"


class CodeChanges(NamedTuple):
    """What has changed between two parts of a run, or between a run and its fork, that is not in their scenarios. In
    words, such as "module mine changed"."""

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
