"""Running scenarios from Python."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from actors import InlinePool, JobFailed
from actors.host import describe
from raysim.dry import dry_run
from raysim.engine import Engine
from raysim.errors import RunFailed
from raysim.result import Result
from raysim.scenario import Scenario
from raysim.simulate import Progress


def run(
    scenario: Scenario,
    *,
    out: str | Path = "runs",
    inline: bool = False,
    dry: bool = False,
    address: str | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Result:
    """Runs a scenario on Ray and gives its result, which is also in a new folder below `out`.

    inline: in this process, without Ray; the numbers are the same. dry: the timeline alone, nothing is trained.
    address: of a Ray cluster; else RAY_ADDRESS; else a local one is started. progress: called as the run goes on.

    Raises RunFailed where a client's or the server's task does, actors.MissingResources where the cluster is too small.
    """
    folder = new_folder(Path(out), f"{scenario.name}-dry" if dry else scenario.name)
    if dry:
        try:
            dry_run(scenario, folder)
        except (OSError, ValueError) as error:  # data that are not there, a script that cannot be followed
            raise RunFailed("the timeline", describe(error)) from error
        return Result(folder)
    engine = Engine(scenario, folder, folder.name)
    try:
        for step in _inline(engine) if inline else _on_ray(engine, address):
            if progress is not None:
                progress(step)
    except JobFailed as failed:
        raise RunFailed(failed.label, failed.cause, failed.traceback) from None
    return Result(folder)


def new_folder(out: Path, name: str) -> Path:
    """An empty folder of the name and the time, absolute."""
    stem = f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
    for suffix in ["", *(f"-{n}" for n in range(2, 1000))]:
        folder = out.resolve() / (stem + suffix)
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        return folder
    raise FileExistsError(f"{out}: holds a thousand runs of this second already")


def _inline(engine: Engine) -> Iterator[Progress]:
    pool = InlinePool()
    try:
        yield from engine(pool)
    except JobFailed:
        raise
    except Exception as error:  # of the engine itself, which the scheduler actor reports in the same way
        raise JobFailed("scheduler", describe(error), traceback.format_exc()) from error
    finally:
        pool.close()


def _on_ray(engine: Engine, address: str | None) -> Iterator[Progress]:
    from actors.session import Demand, run_on_ray

    wanted = engine.scenario.resources
    bundles = [(wanted.cpus_per_client, wanted.gpus_per_client)] * wanted.client_actors
    bundles += [(0.0, wanted.gpus_per_aggregator)] * wanted.aggregators
    yield from run_on_ray(engine, engine.run, Demand(tuple(bundles), wanted.wait_s), address)
