"""What a run shows on Ray's dashboards beside what its pool of workers measures."""

from actors import Instrument, Reading
from raysim.engine.progress import Progress

ROUND = Instrument("round", "gauge", "Rounds that are over.")
ROUNDS = Instrument("rounds", "gauge", "Rounds of the whole run, if it does not end early.")
VIRTUAL_TIME = Instrument("virtual_time", "gauge", "Simulated time.", "rounds or seconds, as world.delay.unit says")
METRIC = Instrument(
    "metric",
    "gauge",
    "Last value of each metric, such as accuracy and loss, on the first of run.evaluate_on: the mean over clients if "
    "their own models are evaluated, else that of the global model, or the mean over peers.",
    tags=("metric",),
)
IN_FLIGHT = Instrument("in_flight", "gauge", "Clients that are under way in virtual time, or peers at work.")
STALENESS = Instrument(
    "staleness",
    "gauge",
    "Mean staleness of the updates of the last server step, or mean age of the messages of the last round of peers.",
    "rounds or server steps, as world.staleness says; virtual time between peers",
)
STEPS = Instrument("steps", "counter", "Server steps, or rounds of peers.")
UPDATES = Instrument(
    "updates",
    "counter",
    "Dispatches that ended, by what became of the update: used, discarded, dropped or unfinished. Only those that are "
    "used are trained; with peers, each time that one trained and mixed.",
    tags=("status",),
)
MESSAGES = Instrument(
    "message_bytes",
    "counter",
    "Size of the simulated messages: up to the server and down to clients, or sent and received by peers.",
    "bytes",
    tags=("direction",),
)
OF_RUNS = (ROUND, ROUNDS, VIRTUAL_TIME, METRIC, IN_FLIGHT, STALENESS, STEPS, UPDATES, MESSAGES)
_ENDS = ("used", "discarded", "dropped", "unfinished")


def readings(progress: Progress) -> list[Reading]:
    """Returns what a run shows, through its pool."""
    once = (
        (ROUND, progress.round),
        (ROUNDS, progress.rounds),
        (VIRTUAL_TIME, progress.virtual_time),
        (IN_FLIGHT, progress.in_flight),
        (STALENESS, progress.staleness),
        (STEPS, progress.steps),
    )
    return [
        *(Reading(instrument, value) for instrument, value in once if value is not None),
        *(Reading(METRIC, value, (name,)) for name, value in progress.metrics.items()),
        *(Reading(UPDATES, progress.totals[status], (status,)) for status in _ENDS if status in progress.totals),
        *(Reading(MESSAGES, size, (direction,)) for direction, size in progress.traffic.items()),
    ]
