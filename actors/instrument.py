"""What a run measures for dashboards: gauges and counters, each declared once with its help text."""

from typing import Literal, NamedTuple


class Instrument(NamedTuple):
    """A gauge or a counter. Ray prefixes its name with `raysim_`, and Prometheus shows that with `ray_` before it."""

    name: str
    kind: Literal["gauge", "counter"]
    description: str
    unit: str | None = None
    tags: tuple[str, ...] = ()  # names of what tells its series apart, beside the run

    @property
    def help(self) -> str:
        """The help text that Prometheus shows."""
        return self.description + (f" Unit: {self.unit}." if self.unit else "")

    @property
    def in_prometheus(self) -> str:
        """The name under which Prometheus finds it."""
        return f"ray_raysim_{self.name}" + ("_total" if self.kind == "counter" else "")


class Reading(NamedTuple):
    """What an instrument shows. tags: a value for each of its tags."""

    instrument: Instrument
    value: float  # of a counter: the total so far
    tags: tuple[str, ...] = ()


WORKERS = Instrument(
    "workers",
    "gauge",
    "Workers, by their group, their node and what they do: waiting for a node that has room, starting, idle or busy. "
    "The node is empty until it is known.",
    tags=("group", "node", "state"),
)
JOBS = Instrument(
    "jobs",
    "gauge",
    "Jobs that are not done, by the group of workers that does them: ready ones, which wait for a worker, and running "
    "ones, which a worker has.",
    tags=("group", "state"),
)
DONE = Instrument(
    "jobs_done",
    "counter",
    "Jobs that are done, by their kind and the node where they ran, which is empty for jobs from before a worker was "
    "set up. A job of kind train is a chunk of clients.",
    tags=("task", "node"),
)
BUSY = Instrument(
    "busy_seconds",
    "counter",
    "Real time that workers spent on jobs that are done, by the jobs' kind and their node.",
    unit="s",
    tags=("task", "node"),
)
DEATHS = Instrument(
    "worker_deaths",
    "counter",
    "Workers that died or were given up, by their group and their node.",
    tags=("group", "node"),
)
OF_POOLS = (WORKERS, JOBS, DONE, BUSY, DEATHS)
