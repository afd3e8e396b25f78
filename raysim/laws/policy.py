"""The laws of policies, by which clients are picked."""

import pickle

import numpy as np

from raysim.laws.law import Broken, Groups
from raysim.laws.runs import RUNS
from raysim.laws.subject import Subject
from raysim.world import Candidates, Reports

CLIENTS = 8
IDLE = ([3], [0, 2, 5, 7], list(range(CLIENTS)))


def picks_are_idle_clients(subject: Subject) -> None:
    """It picks idle clients, none of them twice, and at most as many as are wanted."""
    for wanted, idle in _asked():
        picked = _picked(subject, wanted, idle)
        if not set(picked) <= set(idle) or len(set(picked)) < len(picked) or len(picked) > wanted:
            raise Broken(f"pick: must return at most {wanted} of {idle}, none of them twice, got {picked}")


def the_same_generator_picks_alike(subject: Subject) -> None:
    """Equal generators pick the same clients."""
    for wanted, idle in _asked():
        one, other = (_picked(subject, wanted, idle) for _ in range(2))
        if one != other:
            raise Broken(f"pick: must be the same from the same generator, got {one} and {other}")


def candidates_stay_as_they_are(subject: Subject) -> None:
    """It changes nothing of what it is told of clients."""
    for wanted, idle in _asked():
        told = _candidates(idle)
        subject.made.pick(told, wanted, np.random.default_rng(0))
        if pickle.dumps(told) != pickle.dumps(_candidates(idle)):
            raise Broken("pick: must not change what it is told of the candidates, and does; take a copy")


def _asked() -> list[tuple[int, list[int]]]:
    """Returns how many clients are wanted of which idle ones."""
    return [(wanted, idle) for wanted in (1, 3, CLIENTS) for idle in IDLE]


def _picked(subject: Subject, wanted: int, idle: list[int]) -> list[int]:
    return list(map(int, subject.made.pick(_candidates(idle), wanted, np.random.default_rng(0))))


def _candidates(idle: list[int]) -> Candidates:
    """Returns what is known of clients who have 1, 2, ... samples, and labels and numbers of picks that differ."""
    numbers = np.arange(CLIENTS)
    labels = (numbers[:, None] + 1) * (numbers[:, None] % 3 == np.arange(3))
    reports = Reports.none(CLIENTS)
    for client in range(0, CLIENTS, 2):
        reports.set(client, loss=1.0 + client % 3, round=client % 4, duration=2.0, staleness=1.0)
    return Candidates(np.array(idle), numbers + 1, numbers % 3, 4, reports, labels)


LAWS: Groups = (
    (picks_are_idle_clients,),
    (the_same_generator_picks_alike, candidates_stay_as_they_are),
    *RUNS,
)
