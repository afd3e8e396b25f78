"""Reads scenarios from files and plain data, and reports all that is wrong with them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError, create_model

from actors.fault import describe, frames_of
from raysim.parts.errors import Problem, ScenarioError, quoted
from raysim.parts.part import Part, as_tuples
from raysim.scenario.checks import problems_of
from raysim.scenario.explain import explain, shown
from raysim.scenario.schema import Scenario
from results.keys import parse
from results.location import require_file


def read(path: str | Path, below: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Returns the keys of a YAML file, with those of the file that its key `extends` names, where it has none itself.

    Keys that begin with `x-` are left out: they are for blocks that others repeat by alias. below: the files that
    extend this one, each by its whole path. Raises ScenarioError if a file cannot be read or is not a block of keys.
    """
    path, source = Path(path), str(path)
    raw = {key: value for key, value in _read_alone(path, source).items() if not str(key).startswith("x-")}
    if "extends" not in raw:
        return raw
    other = raw.pop("extends")
    if not isinstance(other, str):
        text = f"must be the path of a YAML file, as seen from this one, got {quoted(other)}; name one file"
        raise ScenarioError(source, [Problem("extends", text)])
    if path.resolve() in below:
        text = f"must not come back to this file, got {other}; leave one `extends` out"
        raise ScenarioError(source, [Problem("extends", text)])
    return _merged(read(path.parent / other, (*below, path.resolve())), raw)


def _merged(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Returns the keys of both. Blocks are merged, unless `name` differs: a part's keys are not those of another."""
    merged = dict(base)
    for key, value in own.items():
        before = base.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            same = value.get("name", before.get("name")) == before.get("name")
            merged[key] = _merged(before, value) if same else value
        else:
            merged[key] = value
    return merged


def _read_alone(path: Path, source: str) -> dict[str, Any]:
    """Returns the content of a YAML file."""
    try:
        raw = parse(require_file(path).read_text(encoding="utf-8"))
    except OSError as error:
        cure = "; `raysim scenarios --copy scenarios` writes those of raysim" if not path.exists() else ""
        raise ScenarioError(source, [Problem("", f"cannot be read: {error.strerror}{cure}")]) from error
    except ValueError as error:
        raise ScenarioError(source, [Problem("", f"must be YAML in UTF-8: {error}")]) from error
    if not isinstance(raw, dict):
        raise ScenarioError(source, [Problem("", f"must be a block of keys such as data and model, got {quoted(raw)}")])
    return raw


def override_all(raw: dict[str, Any], overrides: Sequence[str]) -> list[Problem]:
    """Sets keys of `raw` in place, as texts such as "algorithm.buffer=20" say. Returns problems."""
    settings, problems = settings_of(overrides, "overrides", "--set")
    return problems + [problem for path, value in settings if (problem := assign(raw, path, value, "--set"))]


def settings_of(
    texts: Sequence[str], argument: str, option: str, read: Callable[[str], Any] = parse
) -> tuple[list[tuple[str, Any]], list[Problem]]:
    """Returns the keys and values of texts such as "algorithm.buffer=20", and problems.

    argument: where the texts are from, in Python. option: where they are from on the command line, which is the path of
    problems. read: makes a value of a text. It raises ValueError for what is no YAML.
    """
    # A single text would be taken for a list of letters.
    if not isinstance(texts, Sequence) or isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        must = 'must be a list of texts such as ["run.rounds=100"]'
        return [], [Problem(argument, f"{must}, got {quoted(texts)}; change it")]
    found: list[tuple[str, Any]] = []
    problems = []
    for text in texts:
        path, equals, value = text.partition("=")
        path = path.strip()
        if not equals or not all(path.split(".")):
            problems.append(Problem(option, f"must be key.path=value, got {quoted(text)}"))
            continue
        try:
            found.append((path, read(value)))
        except ValueError as error:
            problems.append(Problem(option, f"{path} must be set to YAML, got {quoted(value)}: {error}"))
    return found, problems


def assign(raw: dict[str, Any], path: str, value: Any, where: str) -> Problem | None:
    """Sets the key at a dotted path of `raw` in place, and makes blocks on the way if they are missing or null.

    Returns a problem if something on the way is not a block, or None. where: the path of that problem.
    """
    *way, last = path.split(".")
    block: Any = raw
    for depth, key in enumerate(way, start=1):
        inner = block.get(key)
        if inner is None:
            inner = block[key] = {}
        elif isinstance(inner, str):  # `delay: none` is short for `delay: {name: none}`
            inner = block[key] = {"name": inner}
        if not isinstance(inner, dict):
            key = ".".join(way[:depth])
            todo = f"; set all of {key}" if isinstance(inner, list) else ""
            return Problem(where, f"{key} must be a block to set {path} in, got {quoted(inner)}{todo}")
        block = inner
    block[last] = value
    return None


def load_scenario(path: str | Path, overrides: Sequence[str] = (), case: str | None = None) -> Scenario:
    """Loads and checks the scenario in a YAML file.

    overrides: keys to replace before the check, such as "algorithm.buffer=20". case: the name of a case of the file's
    sweep; the sweep's grid and search are then left out. Raises ScenarioError with all problems.
    """
    raw, source = read(path), str(path)
    problems = _choose(raw, case)
    problems += override_all(raw, overrides)
    if problems:
        raise ScenarioError(source, problems)
    name_after(raw, case)
    try:
        return parse_scenario(raw, source)
    except ScenarioError as error:
        raise ScenarioError(source, [*error.problems, *_several(overrides, error.problems)]) from None


def _several(overrides: Sequence[str], problems: list[Problem]) -> Iterator[Problem]:
    """Yields a problem for each wrong key that is given several values, which only a sweep allows."""
    for text in overrides:
        key, _, value = text.partition("=")
        if "," in value and any(f"{problem.path}.".startswith(f"{key.strip()}.") for problem in problems):
            with suppress(ValueError):
                if len(values := parse(f"[{value}]")) > 1:
                    yield Problem("--set", f"{text} has {len(values)} values; `raysim sweep` runs one after the other")


def _choose(raw: dict[str, Any], case: str | None) -> list[Problem]:
    """Takes the sweep out of a file's plain data, and sets the keys of one of its cases. Returns problems."""
    block = raw.pop("sweep", None)
    found = block.get("cases") if isinstance(block, dict) else None
    cases = found if isinstance(found, dict) else {}
    if case is None:
        some = f", or one of its cases with --case, such as --case {next(iter(cases))}" if cases else ""
        text = f"makes several runs of this file; run it with `raysim sweep`{some}"
        return [Problem("sweep", text)] if block is not None else []
    if not cases:
        return [Problem("--case", f"must not be given, because the file has no cases, got {case}; leave it out")]
    if case not in cases or not isinstance(cases[case], dict):
        return [Problem("--case", f"must be one of {', '.join(cases)}, got {case}")]
    return set_case(raw, cases[case])


def set_case(raw: dict[str, Any], settings: dict[str, Any]) -> list[Problem]:
    """Sets the keys of a case in a file's plain data, in place. Returns problems."""
    problems = [_dropping(raw, *item) or assign(raw, *deepcopy(item), "sweep") for item in settings.items()]
    return [problem for problem in problems if problem]


def _dropping(raw: dict[str, Any], path: str, value: Any) -> Problem | None:
    """Returns a problem if a case replaces `local`, `run` or `resources`, and so drops keys that the file sets there,
    such as its rate: they would silently have their defaults.

    Other blocks may be replaced, because their keys often exclude each other, such as those of a part.
    """
    before = raw.get(path)
    if path not in ("local", "run", "resources") or not isinstance(value, dict) or not isinstance(before, dict):
        return None
    if not (dropped := sorted(before.keys() - value.keys())):
        return None
    keys = ", ".join(f"{path}.{key}" for key in value) or f"{path}.<key>"
    sets = ", ".join(map(shown, dropped))
    text = f"must not take the place of the whole block, which also sets {sets}; set only {keys}, or repeat them"
    return Problem(f"sweep.cases: {path}", f"{text}, got {quoted(value)}")


def name_after(raw: dict[str, Any], case: str | None) -> None:
    """Appends the name of a case to the name in a scenario's plain data, in place."""
    if case and isinstance(raw.get("name"), str):
        raw["name"] += f"-{case}"


@contextmanager
def no_faults(source: str) -> Iterator[None]:
    """Raises ScenarioError for what a class of the user's own raises, `sys.exit` too, which would pass for an end."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if not (frames := frames_of(error)) and not isinstance(error, SystemExit):
            raise
        where = f"{frames[-1].function}, {frames[-1].place}," if frames else "one of them"
        what = f"called sys.exit({error.code!r})" if isinstance(error, SystemExit) else f"raised {describe(error)}"
        text = f"must name classes that neither raise nor end the process, but {where} {what}"
        raise ScenarioError(source, [Problem("", f"{text}; correct it")]) from error


def parse_scenario(raw: dict[str, Any], source: str = "scenario") -> Scenario:
    """Checks plain data, as a YAML file holds them, and returns the scenario.

    source: where the data are from, for error messages. Raises ScenarioError with all problems.
    """
    return checked(read_back(raw, source), source)


def scenario_of(given: Scenario | dict[str, Any] | str | Path) -> Scenario:
    """Returns the scenario that Python code gives: itself, plain data, or the path of a file.

    Raises ScenarioError with all problems.
    """
    if isinstance(given, str | Path):
        return load_scenario(given)
    if isinstance(given, dict):
        return parse_scenario(given)
    if isinstance(given, Scenario):
        return checked(given)
    raise ScenarioError("scenario", [Problem("", f"must be a Scenario, plain data or a path, got {quoted(given)}")])


def read_back(raw: dict[str, Any], source: str) -> Scenario:
    """Returns the scenario of a run, as its run.json holds it. The files that it names may be gone by now.

    Raises ScenarioError if a key is wrong.
    """
    try:
        with no_faults(source):
            return Scenario.model_validate(as_tuples(raw))
    except ValidationError as error:
        raise ScenarioError(source, explain(error, Scenario, raw)) from None
    except RecursionError:
        raise ScenarioError(source, [Problem("", "must not hold an alias of a block within that block")]) from None


def checked(scenario: Scenario, source: str = "scenario") -> Scenario:
    """Returns a scenario whose parts fit together. Raises ScenarioError with all problems if they do not."""
    with no_faults(source):
        problems = problems_of(scenario)
    if problems:
        raise ScenarioError(source, problems)
    return scenario


@cache
def _alone(key: str) -> type[Part]:
    field: Any = (Scenario.model_fields[key].rebuild_annotation(), ...)
    return create_model("Alone", __base__=Part, **{key: field})


def parse_block(key: str, raw: Any, source: str) -> Any:
    """Checks a block of a scenario, such as `model`, and returns its part. Raises ScenarioError with all problems."""
    block = {key: raw}
    try:
        return getattr(_alone(key).model_validate(as_tuples(block)), key)
    except ValidationError as error:
        raise ScenarioError(source, explain(error, _alone(key), block)) from None
