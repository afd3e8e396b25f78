"""The blocks `run` and `resources`: how long a run lasts, when it evaluates, who is told, and where it runs."""

import math
import re
from functools import partial
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from raysim.local import TrainingLoss
from raysim.local.loss import TRAINING_LOSSES
from raysim.metrics import METRICS, Metric
from raysim.observers import OBSERVERS, TRACKERS, Observer, Tracker
from raysim.parts.errors import quoted
from raysim.parts.own_function import as_function
from raysim.parts.part import Bytes, Clients, Count, Fraction, NonNegative, OneOf, Part, Positive, Rounds, Seconds, Unit
from raysim.world.clock import Horizon

TRAVELS = ("bytes", "up_bytes", "down_bytes")  # what `run.until` counts of messages

_WORD = r"[a-zA-Z0-9](?:[a-zA-Z0-9_.-]{0,61}[a-zA-Z0-9])?"  # Ray's labels follow the syntax of those of Kubernetes
_LABEL = re.compile(rf"(?:[a-zA-Z0-9.-]{{1,253}}/)?{_WORD}")
_SELECTOR = re.compile(rf"!?(?:{_WORD}|in\({_WORD}(?:, ?{_WORD})*\))")

# The short forms my_module:metric and my_module:loss.
_metric = partial(as_function, base=Metric, kept=("label", "larger_is_better"))
_loss = partial(as_function, base=TrainingLoss)


class Until(Part):
    """What ends a run, in addition to `rounds` or instead of it: whichever comes first.

    A run that ends so has the bits of one that was given as many rounds, and can be extended. `virtual_time` and
    `updates` are known beforehand, and are met. All else is looked at when models are evaluated, so that more may be
    spent until the next evaluation.
    """

    virtual_time: Annotated[Positive, Unit("rounds or seconds, as world.delay.unit says")] | None = None
    """Virtual time at which the run ends, and the model is evaluated as it is then. Updates that are under way are
    unfinished. With peers, the run ends with the last round that is over by then."""
    updates: Annotated[Count, Unit("updates")] | None = None
    """Number of updates that server steps use, or of peers' mixes. The round in which there are as many is the last."""
    bytes: Bytes | None = None
    """Size of the messages so far, up and down, as the table `steps` counts them: a number, or a text such as 5MB (5e6
    bytes) or 5MiB (5 * 2**20 bytes)."""
    up_bytes: Bytes | None = None
    """Size of the messages of clients or peers so far, as `bytes`."""
    down_bytes: Bytes | None = None
    """Size of the messages to clients or peers so far, as `bytes`."""
    flops: Annotated[Positive, Unit("floating-point operations")] | None = None
    """Floating-point operations of clients or peers so far, as the column `client_flops` of the table `steps` counts
    them."""
    metric: Annotated[str, Field(min_length=1)] | None = None
    """Metric that `at_least`, `at_most` and `patience` are about, such as accuracy. It is read on the samples that
    `data.validation` sets aside, as progress shows it: the mean over clients or peers if their own models are
    evaluated, else that of the global model."""
    at_least: float | None = None
    """The run ends when the metric is at least this."""
    at_most: float | None = None
    """The run ends when the metric is at most this."""
    patience: Annotated[Count, Unit("evaluations")] | None = None
    """The run ends after as many evaluations in a row in which the metric was no better than the best before."""

    @model_validator(mode="after")
    def _has_an_end(self) -> Self:
        asked = [key for key in ("at_least", "at_most", "patience") if getattr(self, key) is not None]
        if self.metric is None and asked:
            raise ValueError(f"metric must be given, because {asked[0]} is about it; set it, for example to accuracy")
        if self.metric is not None and not asked:
            raise ValueError(f"metric {self.metric} needs at_least, at_most or patience, got none; set one")
        if not self.budgets and self.metric is None:
            raise ValueError("must have a key, such as virtual_time, bytes or metric, got none; add one")
        return self

    @property
    def budgets(self) -> dict[str, float]:
        """What may be spent, by key. Every run comes to an end of it."""
        keys = ("virtual_time", "updates", *TRAVELS, "flops")
        return {key: value for key in keys if (value := getattr(self, key)) is not None}

    @property
    def trained(self) -> str:
        """The ends that are known only once clients train, in words; empty if there are none."""
        keys = ("flops", "at_least", "at_most", "patience")
        return " or ".join(key for key in keys if getattr(self, key) is not None)


class EveryTime(Part):
    """Evaluations by virtual time."""

    virtual_time: Annotated[Positive, Unit("rounds or seconds, as world.delay.unit says")]
    """Virtual time from one evaluation to the next, so that runs are evaluated at equal times whatever their rounds
    take. The server's model is evaluated as it is at each multiple of it; peers' after the last round that is over by
    then."""


class Checkpointing(Part):
    """When a run makes a checkpoint, from which `raysim resume` continues. Results do not depend on it."""

    every_s: Seconds | None = 300.0
    """Least wall seconds from one checkpoint to the next. Longer if checkpoints would otherwise take more than 2 % of
    the run's time. null: none by time."""
    every_rounds: Rounds | None = None
    """Rounds from one checkpoint to the next. null: none by rounds."""
    at_end: bool | Literal["auto"] = "auto"
    """Whether a run that finishes leaves a checkpoint, so that it can be extended by more rounds without doing again
    what it has done since the one before. auto: unless writing it would take more than 2 % of the time since then, at
    100 MB a second or as fast as the one before. A run that is interrupted leaves one whatever this says, but peers
    that do not wait for each other make their last one before the first of them mixes for the last time."""


class RunSettings(Part):
    """How long a run lasts, and when models are evaluated."""

    rounds: Rounds | None = None
    """Number of rounds. Where the world has no rounds (`concurrency` with delays in seconds), it is the number of
    server steps; for peers that do not wait for each other, a round is as many mixes as there are peers. null: `until`
    alone ends the run."""
    until: Until | None = None
    """What else ends the run, such as {virtual_time: 900}, {bytes: 1GB} or {metric: accuracy, at_least: 0.8}: whichever
    comes first. null: nothing."""
    evaluate_every: Rounds | EveryTime = 10
    """Rounds from one evaluation to the next or, such as {virtual_time: 100}, virtual time. The last model is always
    evaluated."""
    keep_best: Annotated[str, Field(pattern=r"^validation [A-Za-z]\w*$")] | None = None
    """Metric by which the best model is kept in addition to the last one, in best.safetensors: the word validation and
    its name, such as validation accuracy. It is read as that of `until` is. null: only the last model is kept."""
    evaluate_on: Annotated[tuple[Literal["test", "train", "validation"], ...], Field(min_length=1)] = ("test",)
    """Splits on which the global model, or the peers' models, are evaluated. train: all samples that clients train on.
    validation: what `data.validation` sets aside, which is always evaluated, and first, named or not. Progress shows
    the first split."""
    evaluate_clients: Clients | Literal["all"] | None = None
    """Number of clients, or all, whose own models are evaluated on their own test samples (`data.local_test`), and on
    those that they set aside (`data.validation`); they are the same clients each time. Progress then shows the mean
    over them, and searches tune on it. null: none. Clients that are `data.unseen` are all evaluated after the last
    round, whatever this says. With peers: the number of peers that are evaluated; null: all."""
    metrics: tuple[Annotated[Metric, OneOf(METRICS), BeforeValidator(_metric)], ...] = ()
    """Metrics of all models that are evaluated, in addition to accuracy and loss: names, or custom functions as
    my_module:metric. All outputs of a model on a split are kept in memory for them."""
    loss: Annotated[TrainingLoss, OneOf(TRAINING_LOSSES), BeforeValidator(_loss)] | None = None
    """Loss that training minimises, unless the algorithm says otherwise, and that evaluations show as `loss`: a name,
    or a custom function as my_module:loss. null: cross-entropy of labels, half the squared error of targets."""
    compare_updates: bool = False
    """Whether the table of updates shows how long each update that a step uses is and how far it agrees with the
    others: column `update_norm`, the norm of its `delta`, and `update_cosine`, the cosine between that and the
    mean delta of the step, weighted by samples. Every update of a step is then kept until the step is done. The
    columns are null in algorithms whose clients send no delta, and 0 divided by 0 is null."""
    save_clients: bool = False
    """Whether each client's own last model is kept, as a row of clients.safetensors. Peers' models are always kept."""
    on_divergence: Literal["stop", "go_on"] = "stop"
    """What to do when a loss, an update or a model is not finite. stop: the run ends there, with status diverged, and
    its tables stay. go_on: it continues to the end. Either way, run.json says what was not finite first."""
    observers: tuple[Annotated[Observer, OneOf(OBSERVERS)], ...] = ()
    """Who follows the progress of the run: names, or custom classes as my_module:MyObserver. Results do not depend on
    them."""
    log: tuple[Annotated[Tracker, OneOf(TRACKERS)], ...] = ()
    """Trackers of experiments that the run is sent to: names, or custom classes as my_module:MyTracker. Results do
    not depend on them."""
    checkpoint: Checkpointing = Checkpointing()
    """When the run makes a checkpoint. The newest one is kept, in the folder `checkpoint` of the run."""

    @model_validator(mode="after")
    def _comes_to_an_end(self) -> Self:
        if self.rounds is None and self.until is None:
            raise ValueError("rounds must be given, or `until`, got neither; set run.rounds, for example to 100")
        if self.rounds is None and self.until is not None and not self.until.budgets:
            text = "until.metric may never be reached, so rounds must be given, too, or a budget such as virtual_time"
            raise ValueError(f"{text}, got neither; set run.rounds")
        return self

    @property
    def horizon(self) -> Horizon:
        """When the timeline ends, as far as that is known beforehand, and when models are evaluated."""
        ends, every = self.until.budgets if self.until else {}, self.evaluate_every
        time, updates = (ends.get(key, math.inf) for key in ("virtual_time", "updates"))
        by_time = every.virtual_time if isinstance(every, EveryTime) else None
        return Horizon(self.rounds or math.inf, time, updates, every if isinstance(every, int) else None, by_time)

    @property
    def directions(self) -> dict[str, bool | None]:
        """By name in the tables, whether larger values of own metrics are better; None where that is not known."""
        return {metric.title: metric.direction for metric in self.metrics}


def _fitting(pattern: re.Pattern[str], must: str, text: str) -> str:
    """Returns a text that fits a pattern. must: what it must be."""
    if not pattern.fullmatch(text):
        raise ValueError(f"must be {must}, got {quoted(text)}")
    return text


_NAME = "the name of a label, such as disk or ray.io/accelerator-type"
_VALUE = 'a value of the label, "!value", in(a, b) or "!in(a, b)"'
Label = Annotated[str, AfterValidator(partial(_fitting, _LABEL, _NAME))]
Selector = Annotated[str, AfterValidator(partial(_fitting, _SELECTOR, _VALUE))]


class Nodes(Part):
    """Which nodes of a cluster may host an actor."""

    labels: dict[Label, Selector] = Field(default_factory=dict)
    """Labels that a node must have, as `ray start --labels` sets them: for each a value, "!value", in(a, b) or
    "!in(a, b)". Ray itself sets some, such as `ray.io/accelerator-type`, the model of the GPUs."""


class Resources(Part):
    """What a run asks of the cluster.

    Results depend only on `chunk`, `shards`, `threads`, and on whether a GPU is used.
    """

    client_actors: Count = 2
    """Number of processes that train clients; each can host any number of clients."""
    aggregators: Count = 1
    """Number of processes that do the server's steps. They do each step together, and share searches on server data
    shard by shard; so there are at most `shards` of them."""
    cpus_per_client: Annotated[NonNegative, Unit("CPUs")] = 1.0
    """CPUs that Ray reserves for each client actor."""
    gpus_per_client: Annotated[Fraction, Unit("GPUs")] = 0.0
    """Share of a GPU for each client actor, such as 0.25, and of its memory. 0: it runs on the CPU."""
    gpus_per_aggregator: Annotated[Fraction, Unit("GPUs")] = 0.0
    """Share of a GPU for each aggregator, and of its memory. 0: it runs on the CPU."""
    cuda_graphs: Literal["auto", "on", "off"] = "auto"
    """Whether the kernels of a local step are recorded on a GPU, once for each shape of mini-batches, and then started
    together. It changes no bit. auto: off, until they have been measured. on: an error where that is not possible."""
    clients_on: Nodes = Nodes()
    """Nodes that client actors may be on. {}: any node with room."""
    aggregators_on: Nodes = Nodes()
    """Nodes that aggregators may be on. {}: any node with room."""
    load_on: Nodes | None = None
    """Nodes that may load the data, which then go to each other node through Ray. null: the node of the process that
    starts the run."""
    threads: Count = 1
    """Number of CPU threads in each actor. It can change the last bits of results."""
    chunk: Clients = 5
    """Largest number of clients, or of peers, in a job. The updates of its clients are summed there, so it can change
    the last bits of results. With peers, it only changes the rows of the table `tasks`."""
    shards: Count = 1
    """Number of parts into which mini-batches of a server's search are cut. Aggregators take them in turn and sum their
    gradients in order, so it can change the last bits of results."""
    wait_s: Seconds = 0.0
    """Seconds that an autoscaling cluster may take to provide what is asked for. 0: if resources are missing, the run
    fails at once. Also how long a run that has lost a node waits for another if nothing else can run, but at least
    two minutes; then it ends, and can be resumed."""


def computes_on(asked: dict[str, Any]) -> dict[str, Any]:
    """Returns whether a run uses GPUs. Bits depend on that, but a resumed run may change it. asked: the block
    `resources` as plain data."""
    return {key: (asked.get(key) or 0) > 0 for key in ("gpus_per_client", "gpus_per_aggregator")}
