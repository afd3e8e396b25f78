"""Adds advice to the failure of a job: where in the user's own code it was raised, or the keys that save memory."""

from actors import InlinePool, JobFailed, LocalPool, Pool
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
    if failed.frames:
        cause += f" - raised in {', '.join(failed.frames[-1])}"
    return failed if cause == failed.cause else JobFailed(failed.label, cause, failed.traceback)


def _fewer(asked: Resources, memory: str) -> str:
    """Returns the keys with which actors get more memory: that of a GPU, or of a node."""
    kind = "gpus" if memory == "gpu" else "cpus"
    share = getattr(asked, f"{kind}_per_client")
    return f"lower resources.client_actors ({asked.client_actors}), raise resources.{kind}_per_client ({share:g}), or "
