"""Runs several updates at once, so that what they train is trained together.

An update is a pure function. So it is called until it wants to train; once that is done, for all updates together, it
is called again from its beginning and is given the result.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from raysim.local.model import Model
from raysim.local.net import Net
from raysim.local.samples import Samples
from raysim.local.settings import Local
from raysim.local.stacked import DoneTraining, JointTraining, train_together
from raysim.local.train import Correction, Trained, Trainer, train

Result = TypeVar("Result")


class Wanted(BaseException):
    """Leaves an update that wants to train. It is no Exception, so that no algorithm catches it by mistake."""

    def __init__(self, training: JointTraining) -> None:
        self.training = training


class Rehearsal(Generic[Result]):
    """An update that is called again and again, until all that it trains has been trained.

    update: does the update, with a trainer that it is given.
    """

    def __init__(self, update: Callable[[Trainer], Result]) -> None:
        self._update = update
        self._done: list[DoneTraining] = []
        self._recalled = 0  # how many of them this call of the update has been given

    def play(self) -> Result:
        """Calls the update, and returns what it returns. Raises Wanted if that depends on a training to be done."""
        self._recalled = 0
        return self._update(self._train)

    def add(self, done: DoneTraining) -> None:
        """Adds the training that was wanted."""
        self._done.append(done)

    def _train(
        self,
        net: Net,
        start: Model,
        samples: Samples,
        settings: Local,
        order: np.random.Generator,
        *,
        part: str | None = None,
        correction: Correction | None = None,
        **others: Any,
    ) -> Trained:
        """Stands in for `train`. Trainings with a tolerance or a loss of their own cannot wait for others."""
        if self._recalled < len(self._done):
            trained, seen = self._done[self._recalled]
            net.steps, net.seen = net.steps + int(trained.steps), net.seen + seen
            net.passes += 3 * seen
            # A copy, because the update may change it and then be called again; a view would keep all rows in memory.
            trained = trained._replace(model=trained.model.replace(trained.w.clone()))
        elif len(samples) and others.get("tolerance") is None and others.get("loss") is None:
            order = copy.deepcopy(order)  # the same object serves the next client
            raise Wanted(JointTraining(start, samples, settings, order, part, correction))
        else:
            seen = net.seen
            trained = train(net, start, samples, settings, order, part=part, correction=correction, **others)
            kept = trained._replace(model=trained.model.replace(trained.w.clone()))
            self._done.append(DoneTraining(kept, net.seen - seen))
        self._recalled += 1
        return trained


def rehearse(net: Net, updates: Sequence[Callable[[Trainer], Result]]) -> list[Result]:
    """Returns what each update returns. Their first trainings are done together, then their second ones, and so on."""
    rehearsals = [Rehearsal(update) for update in updates]
    results: dict[int, Result] = {}
    while len(results) < len(updates):
        wanted: dict[int, JointTraining] = {}
        for place, rehearsal in enumerate(rehearsals):
            if place not in results:
                try:
                    results[place] = rehearsal.play()
                except Wanted as wish:
                    wanted[place] = wish.training
        for place, done in zip(wanted, train_together(net, list(wanted.values())), strict=True):
            rehearsals[place].add(done)
    return [results[place] for place in range(len(updates))]
