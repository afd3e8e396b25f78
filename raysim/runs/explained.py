"""Adds advice to the failure of a job: the key of the scenario whose code failed, or the keys that save memory."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from actors import InlinePool, JobFailed, LocalPool, Pool
from actors.fault import OURS, Frame
from raysim.parts.own import path_of
from raysim.parts.own_code import by_key
from raysim.parts.part import Part
from raysim.scenario import Scenario
from raysim.scenario.resources import Resources


def explained(failed: JobFailed, scenario: Scenario, pool: Pool | None = None) -> JobFailed:
    """Returns the failure of a job, with advice in terms of the scenario.

    If memory ran out, it says which keys to change. If it was raised in code of the user's own, it says where.
    pool: where the job was carried out; None: on Ray.
    """
    cause = failed.cause
    if failed.memory is not None:
        training = f"local.batch_size ({scenario.local.batch_size}) or resources.chunk ({scenario.resources.chunk})"
        share = _fewer(scenario.resources, failed.memory)
        if isinstance(pool, LocalPool):
            share = "take fewer worker processes (--local), or "
        elif isinstance(pool, InlinePool):
            share = ""
        cause += f"; {share}lower {training}"
    if culprit := culprit_of(failed.frames, scenario):
        cause += f" - raised in {culprit}"
    return failed if cause == failed.cause else JobFailed(failed.label, cause, failed.traceback)


def _fewer(asked: Resources, memory: str) -> str:
    """Returns the keys with which actors get more memory: that of a GPU, or of a node."""
    kind = "gpus" if memory == "gpu" else "cpus"
    share = getattr(asked, f"{kind}_per_client")
    return f"lower resources.client_actors ({asked.client_actors}), raise resources.{kind}_per_client ({share:g}), or "


class Culprit(NamedTuple):
    """Where an error was raised."""

    key: str | None  # the key of the scenario that names the code; None if it is not known
    function: str
    place: str  # file:line

    def __str__(self) -> str:
        return ", ".join(filter(None, self))


def culprit_of(frames: Sequence[Frame], scenario: Part) -> Culprit | None:
    """Returns where in the user's own code an error was raised; None if no such code was called.

    The key is that of the innermost call of a class or function that the scenario names, or of a module that only one
    key names.
    """
    if not frames:
        return None
    named = dict(reversed([*_named(scenario)]))
    for function, _ in reversed(frames):
        module = function.partition(":")[0]
        exact = [key for path, key in named.items() if f"{function}.".startswith(f"{path}.")]
        keys = exact or list({key for path, key in named.items() if path.partition(":")[0] == module})
        if exact or len(keys) == 1:
            return Culprit(keys[0], *frames[-1])
    return Culprit(None, *frames[-1])


def _named(scenario: Part) -> Iterator[tuple[str, str]]:
    """Yields (module:name, key) of the user's own classes and functions that a scenario names, and of the bases of
    the classes."""
    for key, value in by_key(scenario):
        if isinstance(value, Part):
            own = [cls for cls in type(value).__mro__ if cls.__module__.partition(".")[0] not in OURS]
            yield from ((path_of(cls), key) for cls in own if issubclass(cls, Part))
        elif isinstance(value, str) and ":" in value:
            yield value, key.removesuffix(".function")
