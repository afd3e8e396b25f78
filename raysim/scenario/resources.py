"""The block `resources` of a scenario: the processes of a run, and the nodes of a Ray cluster that they may be on."""

import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from raysim.parts.errors import quoted
from raysim.parts.part import Clients, Count, Fraction, NonNegative, Part, Seconds, Unit

_WORD = r"[a-zA-Z0-9](?:[a-zA-Z0-9_.-]{0,61}[a-zA-Z0-9])?"  # Ray's labels follow the syntax of those of Kubernetes
_LABEL = re.compile(rf"(?:[a-zA-Z0-9.-]{{1,253}}/)?{_WORD}")
_SELECTOR = re.compile(rf"!?(?:{_WORD}|in\({_WORD}(?:, ?{_WORD})*\))")


def _text(fits: Callable[[str], Any], must: str) -> AfterValidator:
    """Returns what refuses texts that do not fit. must: what they must be."""

    def check(text: str) -> str:
        if not fits(text):
            raise ValueError(f"must be {must}, got {quoted(text)}")
        return text

    return AfterValidator(check)


Label = Annotated[str, _text(_LABEL.fullmatch, "the name of a label, such as disk or ray.io/accelerator-type")]
Selector = Annotated[str, _text(_SELECTOR.fullmatch, 'a value of the label, "!value", in(a, b) or "!in(a, b)"')]


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
