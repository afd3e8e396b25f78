"""The base of all workers: the data, whose memory the workers of a node share, and a model that fits the data."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache, cached_property, partial

import torch

from raysim.algorithms import Central
from raysim.data import Federation
from raysim.data.meaning import by_name, shape_of
from raysim.local import Local, graphs
from raysim.local.logged import Logged
from raysim.local.loss import CrossEntropy
from raysim.local.model import Model
from raysim.local.nested import Inner
from raysim.local.net import Net
from raysim.local.outputs import LOSSES
from raysim.local.samples import Pixels
from raysim.local.settings import fits
from raysim.local.task import Task
from raysim.models import ModelPart
from raysim.models.build import initialise
from raysim.models.slices import Index, Slices
from raysim.parts.errors import BadInput, BadValue, located
from raysim.scenario import Scenario
from raysim.scenario.checks import notes_of, unmet
from raysim.terms import Missed, ModelKey, Moment, Record, Traffic, Trip
from raysim.uplink.channel import traffic_of
from raysim.workers import records
from raysim.workers.client_samples import ClientSamples
from raysim.workers.evaluation import HAS, Evaluator
from raysim.workers.releasing import Adapting
from raysim.workers.replies import Described, Measured, Numbers
from raysim.workers.returned import calling
from raysim.workers.variants import Variant

# Evaluations draw with keys of their own: this number, which is above any number of dispatches, plus the version.
EVALUATING = 2**32
NOTHING_MISSED = Missed()


class Workbench:
    """A worker's data and model, made once in each actor. No call of a method has an effect on later calls."""

    def __init__(self, scenario: Scenario, federation: Federation, device: torch.device) -> None:
        """Raises BadInput if the model, a metric or the loss does not fit the data, or no parameter is shared."""
        self.scenario, self.federation, self.device = scenario, federation, device
        self.samples = ClientSamples(scenario, federation, device)
        self.groups, self.loader = self.samples.groups, self.samples.loader
        shape = shape_of(federation.train.x)
        # Of one input as a module gets it, which is (C, H, W) for an image.
        self.shape = (shape[2], *shape[:2]) if federation.train.pixels and isinstance(shape, tuple) else shape
        for problem in unmet(scenario, HAS.get(federation.loss, "targets")):
            raise BadInput(problem.path, problem.text)
        with located("model"):
            self.net = self.network(None)
            if self.net.layout.cut == 0:
                named = ", ".join(scenario.model.personal)
                text = f"must leave some parameters to be shared, but [{named}] names all of them; leave some out"
                raise BadValue(text, "personal")
            if scenario.release is not None and self.net.layout.buffers_cut:
                text = "must not be average with a release, because BatchNorm's statistics would travel without noise"
                raise BadValue(f"{text}; set it to frozen or local, or take GroupNorm", "norm")
        self.whole = whole = Variant(1.0, self.net, scenario)
        central = scenario.algorithm if isinstance(scenario.algorithm, Central) else None
        holds_all = central is None or central.depth(1.0) == central.depth(None)  # clients of level 1
        self.start = whole.start
        self._variants: dict[ModelKey, Variant] = {1.0: whole} if holds_all else {}
        self._indices: dict[tuple[float, float], Index] = {}  # of a level's model in that of another one
        places = federation.train.y.shape[1:] if federation.loss == "cross_entropy" else ()
        with located("local"):
            fits(scenario.local, self.net, places)
        for place, group in enumerate(scenario.clients):
            key = next((key for key, model in scenario.models.items() if model == group.model), 1.0)
            with located(f"clients.{place}.local"):
                fits(group.settings(scenario.local), self.net if key == 1.0 else self.variant(key).net, places)
        self.logged = Logged({}, {})  # what tasks were given to log
        self.adapting = Adapting(scenario)
        self.evaluator = Evaluator(scenario, federation, self.net, self.loader)
        self.population = scenario.population(federation.samples)
        self.at(Moment())

    def network(self, level: float | None, part: ModelPart | None = None) -> Net:
        """Returns a new network of a level; None: the server's. part: its model; None: the scenario's."""
        scenario, federation = self.scenario, self.federation
        central = scenario.algorithm if isinstance(scenario.algorithm, Central) else None
        depth, model = central.depth(level) if central else None, part or scenario.model
        width = 1.0 if level is None or depth else level
        module = initialise(model, self.shape, federation.num_classes, scenario.seed, width, depth)
        if central:
            central.prepare(module, level or 1.0)
        net = Net(
            module,
            model.personal,
            # Cross-entropy that is named has the bits of that which is not.
            LOSSES[federation.loss] if scenario.run.loss in (None, CrossEntropy()) else scenario.run.loss,
            self.device,
            channels_last=model.channels_last,
            norm=model.norm,
            head=model.embeds_at,
        )
        net.classes = federation.num_classes
        if federation.mean:
            net.pixels = Pixels(federation.mean, federation.std, self.device)
        if scenario.resources.cuda_graphs == "on" and self.device.type == graphs.DEVICE:
            graphs.require_capturable(net)
            net.captured = {}
        return net

    def variant(self, level: ModelKey) -> Variant:
        """Returns the model of a key, which is made when it is first asked for."""
        if level in self._variants:
            return self._variants[level]
        if isinstance(level, str):
            with located(f"clients.{self.scenario.place_of(level)}.model"):
                net = self.network(None, self.scenario.models[level])
                self._variants[level] = Variant(level, net, self.scenario)
        else:
            with located("capacity.levels"):
                net, whole = self.network(level), self.net
                slices = Slices(whole.module, whole.layout, net.module, net.layout)
                self._variants[level] = Variant(level, net, self.scenario, slices)
        return self._variants[level]

    def _inner(self, level: float, narrow: float) -> Inner:
        """Returns the network of a level below another one, whose first units it has."""
        wide, net = self.variant(level).net, self.variant(narrow).net
        if (level, narrow) not in self._indices:
            slices = Slices(wide.module, wide.layout, net.module, net.layout)
            self._indices[level, narrow] = slices.of(0)
        return Inner(net, self._indices[level, narrow])

    def describe(self) -> Described:
        """Returns what the scheduler must know of the data and the model."""
        federation, layout = self.federation, self.net.layout
        return Described(
            samples=federation.samples,
            held_out=federation.held_out.sizes,
            evaluation_rows={split: len(rows) for split, (_, rows) in self.evaluator.splits.items()},
            partition=federation.partition_table(),
            parameters=layout.parameters,
            entries=tuple((entry.name, entry.shape, entry.offset) for entry in layout.entries),
            shape=self.shape,
            classes=federation.num_classes,
            unseen=federation.unseen[federation.held.sizes[federation.unseen] > 0],
            notes=self.notes,
            meaning={**(federation.meaning.plain if federation.meaning else {}), "constant": federation.constant},
            files=federation.meaning.files if federation.meaning else {},
            forward_flops=self._countable_flops(),
            flops_at={},
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings about what is seldom meant in the data or in the scenario."""
        return (*self.federation.notes, *notes_of(self.scenario))

    def task(
        self, client: int, number: int, received: Model, local: Local | None = None, variant: Variant | None = None
    ) -> Task:
        """Returns the task of a client or peer. number: how often it was dispatched, or has mixed, before. local: how
        it trains; by default as the scenario says. variant: its model; by default the server's."""
        samples = self.samples.training_samples(client)
        key = (self.scenario.seed, client, number)
        settings = self.groups.local(client)
        local = local or (self.local if settings is self.scenario.local else settings.at(self.moment))
        net = self.net if variant is None else variant.net
        task = Task(net, received, samples, local, self.population, key, lambda: self.samples.public)
        task.logged, task.moment = self.logged, self.moment
        task.private = self.scenario.privacy is not None and self.scenario.privacy.unit == "sample"
        task.level = variant.level if variant is not None and isinstance(variant.level, float) else 1.0
        task.inner = partial(self._inner, task.level)
        task.own_labels = cache(lambda: torch.from_numpy(self.samples.labels_of(client)))
        task.group = self.groups.name(client)
        return task

    def at(self, moment: Moment) -> None:
        """Gives the schedules of local training, the algorithm and transforms their values at a moment of the run."""
        scenario, self.moment = self.scenario, moment
        if not self._scheduled:
            self.local, self.algorithm = scenario.local, scenario.algorithm
            self.uplink, self.downlink = scenario.sent, scenario.downlink
            return
        self.local, self.algorithm = scenario.local.at(moment), scenario.algorithm.at(moment)
        self.uplink = tuple(transform.at(moment) for transform in scenario.sent)
        self.downlink = tuple(transform.at(moment) for transform in scenario.downlink)

    @cached_property
    def _scheduled(self) -> bool:
        """Whether anything has another value at another moment; looking for it takes long beside a small step."""
        given = self.scenario
        parts = (given.local, given.algorithm, *given.uplink, *given.downlink)
        return any(part.at(Moment()) is not part for part in parts)

    def refuse_logged(self, method: str) -> None:
        """Raises ValueError if a method that has no row in any table logged numbers, besides those of training."""
        if taken := self.logged.take().own:
            text = f"has no row in any table, so task.log must not be called there, got {', '.join(sorted(taken))}"
            raise BadValue(f"{method}: {text}; log in a method that trains, mixes or steps")

    # --- bytes --------------------------------------------------------------------------------------------------------

    def traffic(
        self, client: int, sent: Record, received: Record, variant: Variant, missed: Missed = NOTHING_MISSED
    ) -> Traffic:
        """Returns how many bytes a client's update and the message before it, or a peer's message, take.

        variant: the model of the client or peer.
        """
        layout = variant.net.layout
        tensors = Traffic(records.size(sent, layout), records.size(received, layout))
        found = self.algorithm.traffic(Trip(variant.sizes, tensors, self.groups.name(client), missed))
        if not (self.uplink or self.downlink):
            return found
        up, down = variant.sending.channels(self.uplink, sent), variant.receiving.channels(self.downlink, received)
        return traffic_of(found, up, down, missed.versions)

    def calling(self, method: str, *ids: int, who: str = "", **given: Record) -> AbstractContextManager[str]:
        """Surrounds a call of a method of the algorithm. The arguments are those of `returned.calling`."""
        return calling(self.scenario.algorithm, method, self.scenario.seed, *ids, who=who, **given, **self._shared)

    @cached_property
    def _shared(self) -> dict[str, Record]:
        """The parts of tasks that are the same for all clients of this worker."""
        public = by_name(self.samples.public) if len(self.federation.public) else {}
        return {"the first model": {"w": self.start.w, "buffers": self.start.buffers}, "the public samples": public}

    @cached_property
    def forward_flops(self) -> float:
        """FLOPs of one sample's forward pass through the server's model."""
        return self.variant(1.0).forward_flops(self.samples.some)

    def _countable_flops(self) -> float | None:
        """Returns `forward_flops`; None if they cannot be counted, because no counter can follow the model."""
        try:
            return self.forward_flops
        except Exception:  # whatever it is, training will tell if the model itself is at fault
            return None
        finally:
            self.net.take_solves()

    def numbers(self, client: int, net: Net, **measured: int | float | None) -> Measured:
        """Returns what the table `updates` shows of a client's training with a network: these numbers, what its task
        logged, the solves of deep equilibrium layers in it and, where there are groups, the place of its group among
        `clients`."""
        own: Numbers = {"group": self.groups.place(client)} if self.scenario.clients else {}
        if (solves := net.take_solves()).solves:
            measured["solver_iterations"] = solves.iterations / solves.solves
            measured["solver_residual"], measured["unconverged"] = solves.residual, solves.unconverged
        logged = self.logged.take()
        return Measured({**measured, **logged.columns}, {**own, **logged.own})
