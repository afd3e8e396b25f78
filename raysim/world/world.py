"""The simulated world: who is picked, how long updates take, who is available, what happens to messages."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from raysim.parts.part import Clients, Count, OneOf, Part, Positive, Share, Unit
from raysim.world.availability import Always, Availability, Dropout, Periodic, RandomAvailability
from raysim.world.delay import RANDOM_DELAYS, ComputeDelay, Delay, NoDelay, ScriptedDelay
from raysim.world.links import AllLinks, SomeLinks
from raysim.world.network import EDGE_DELAYS, ConstantEdgeDelay, EdgeDelay
from raysim.world.policies import POLICIES, Policy, UniformPolicy
from raysim.world.trace_availability import TraceAvailability
from raysim.world.trace_delay import TraceDelay

DELAYS: tuple[type[Delay], ...] = (NoDelay, *RANDOM_DELAYS, ComputeDelay, TraceDelay, ScriptedDelay)

AVAILABILITY: tuple[type[Availability], ...] = (Always, RandomAvailability, Periodic, TraceAvailability)


class Dispatch(Part):
    """Which clients are picked, and when. A client in flight is never picked.

    Exactly one of `per_round`, `probability`, `concurrency`, `per_tier` and `picks` must be given.
    """

    per_round: Clients | None = None
    """Number of idle clients that are picked at the start of every round."""
    probability: Annotated[Share | None, Field(gt=0)] = None
    """Probability with which each client is picked at the start of every round, independently of the others (Poisson
    sampling)."""
    concurrency: Clients | None = None
    """Number of clients to keep in flight. They are picked at the start of rounds or, with delays in seconds, whenever
    others arrive."""
    per_tier: Clients | None = None
    """Number of clients that are picked from each of the `tiers`, with delays in seconds. A tier picks anew as soon as
    all that it picked have reported or are lost, whatever other tiers do."""
    tiers: Count | None = None
    """Number of tiers, with `per_tier`. Clients are sorted by how long their first update takes or would take, and cut
    into tiers of equal numbers, the fastest first."""
    policy: Annotated[Policy, OneOf(POLICIES)] = UniformPolicy()
    """How `per_round`, `concurrency` or `per_tier` picks clients among those that are idle and available."""
    picks: tuple[tuple[int, ...], ...] | None = None
    """Clients to pick: for each round, a list of their numbers."""
    round_s: Annotated[Positive, Unit("s")] | None = None
    """Length of a round in seconds, if delays are in seconds. null: a round then ends with its last arrival."""
    reports: Clients | None = None
    """A round ends as soon as so many of the clients that it picked have reported, if delays are in seconds; the others
    are late. So it can pick more clients than it waits for (Bonawitz et al., Towards federated learning at scale,
    2019). null: a round waits for all of them, or for `round_s`."""

    @model_validator(mode="after")
    def _at_most_one(self) -> Self:
        if len(self.given) > 1:
            raise ValueError(
                f"must have exactly one of per_round, probability, concurrency, per_tier and picks, got {self.given}"
            )
        if (self.per_tier is None) != (self.tiers is None):
            raise ValueError("must have both of per_tier and tiers, or none of them; add one, or leave the other out")
        free = self.picks is None and self.probability is None
        if not free and self.policy != UniformPolicy():
            raise ValueError(
                "policy goes with per_round, concurrency or per_tier, got it where something else says who is picked; "
                "leave it out"
            )
        if self.round_s is not None and self.given in (["concurrency"], ["per_tier"]):
            raise ValueError("round_s goes with per_round, probability or picks, because else there are no rounds")
        if self.reports is not None and (self.given not in (["per_round"], ["picks"]) or self.round_s is not None):
            raise ValueError("reports goes with per_round or picks, and without round_s; leave one of them out")
        if self.reports is not None and self.per_round is not None and self.reports > self.per_round:
            raise ValueError(f"reports must be at most per_round, {self.per_round}, got {self.reports}; lower it")
        return self

    @property
    def given(self) -> list[str]:
        """The keys that say when clients are picked: exactly one with a server, none without one."""
        keys = ("per_round", "probability", "concurrency", "per_tier", "picks")
        return [key for key in keys if getattr(self, key) is not None]

    @property
    def size(self) -> int | None:
        """Largest number of clients that a round picks; None with `concurrency` and `per_tier`, and with `probability`,
        which may pick all."""
        return max((len(picked) for picked in self.picks), default=None) if self.picks else self.per_round

    @property
    def in_flight(self) -> int | None:
        """Largest number of clients under way at a time, but for late ones; None with `probability`."""
        return self.per_tier * self.tiers if self.per_tier and self.tiers else self.concurrency or self.size


class World(Part):
    """The simulated world. All its times are in the unit of its delay: rounds or seconds."""

    dispatch: Dispatch = Dispatch()
    """Which clients are picked, and when. Needed with a server; without one, all peers train all the time."""
    delay: Annotated[Delay, OneOf(DELAYS)] = NoDelay()
    """How long a client takes from dispatch to arrival or, without a server, how long a peer's training takes."""
    availability: Annotated[Availability, OneOf(AVAILABILITY)] = Always()
    """Which clients can be picked at what time."""
    dropout: Dropout = Dropout()
    """How often picked clients never report."""
    staleness: Literal["rounds", "versions"] | None = None
    """Unit of staleness: rounds, or versions (server steps), from dispatch to arrival. null: that of the algorithm's
    paper, which is versions where a buffer of updates makes a server step, as in FedAsync, FedBuff, Port, CA2FL and
    FADAS, and rounds where a round does, if there are rounds."""
    synchronous: bool = True
    """For peers only. true: all wait for all, round by round. false: each peer mixes when its own training is over."""
    edge_delay: Annotated[EdgeDelay, OneOf(EDGE_DELAYS)] = ConstantEdgeDelay(value=0.0)
    """For peers only: how long a message to a neighbour takes, in seconds."""
    watts: Annotated[Positive, Unit("W")] | tuple[Annotated[Positive, Unit("W")], ...] | None = None
    """Power of a client, or peer, while it is under way, for comparisons by energy: one number, or a list with one for
    each client; groups of `clients` may have other ones. Delays must be in seconds. Results do not depend on it. null:
    that of the devices of `world.delay`, if it is a trace with a column `watts`; else energy is not told."""
    loss: Share = 0.0
    """For peers only: probability that a message to a neighbour is lost."""
    on_loss: Literal["gone", "kept"] = "gone"
    """For peers only, under algorithms that push: whether the share of a lost message is gone, or kept by the sender,
    who finds out."""
    leave: Literal["wait", "hand_over"] = "wait"
    """For peers only: what a peer that goes does with its state. wait: it waits until the peer is back. hand_over, for
    algorithms that push: all of it goes to one neighbour, drawn among those that are there, and the peer comes back
    with nothing."""
    join: Literal["first", "copy", "empty"] = "first"
    """For peers only: what a peer starts with that is not there at first. first: the model that all start from. copy:
    that of one peer that it hears when it comes, drawn among these; the first model if there is none. empty, for
    algorithms that push: nothing, until it hears something."""
    links: SomeLinks = AllLinks()
    """For peers only: which edges of the topology are there at what time. The name of a CSV or Parquet file is short
    for `{name: trace, path: that file}`."""

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if self.dispatch.picks is not None and not isinstance(self.availability, Always):
            raise ValueError("availability must not be given with dispatch.picks, which says who is picked")
        for key in ("per_tier", "round_s", "reports"):
            if getattr(self.dispatch, key) is not None and self.delay.unit == "rounds":
                raise ValueError(
                    f"dispatch.{key} needs a delay in seconds, got one in rounds; set world.delay.unit: seconds"
                )
        if self.staleness == "rounds" and not self.has_rounds:
            raise ValueError(
                "staleness must be versions where delays are in seconds and clients are not picked by rounds"
            )
        return self

    @property
    def has_rounds(self) -> bool:
        """Whether clients are picked at the start of rounds, instead of whenever one has arrived."""
        return self.delay.unit == "rounds" or self.dispatch.given not in (["concurrency"], ["per_tier"])

    @property
    def round_length(self) -> float | None:
        """Length of a round, in the unit of time; None if it ends with its last arrival, or if there are no rounds."""
        return 1.0 if self.delay.unit == "rounds" else self.dispatch.round_s
