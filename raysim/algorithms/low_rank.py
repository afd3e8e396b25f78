"""The base of algorithms that average products B A of adapters' factors, which averages of A and of B do not give."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from raysim.algorithms.central import Central
from raysim.algorithms.fedavg import by_samples
from raysim.algorithms.signatures import Arrivals, Model, Problems, Setting, Task, Tensor
from raysim.parts.errors import BadInput, Problem, nearest
from raysim.parts.lazy import torch
from raysim.parts.part import Count
from raysim.terms import ModelSizes, Population, Record, Round, Trip

if TYPE_CHECKING:
    from raysim.models.layout import Pair


class LowRank(Central):
    """A synchronous algorithm for `model.lora`, whose clients may have adapters of lower ranks than the model's.

    A client of rank r trains the first r rows of A and columns of B; the others are zero, and stay so, for their
    gradients are zero. They do not travel, so tables, budgets and computed delays count no bytes for them.
    """

    trigger: ClassVar[Round] = Round(late="discard")

    ranks: dict[str, Count] = {}  # noqa: RUF012 - a field of a frozen part
    """Ranks of adapters by the names of groups in `clients`, such as {weak: 2}. All other clients have `lora.rank`."""

    def problems(self, scenario: Setting) -> Problems:
        model, groups = scenario.model, [group.name for group in scenario.clients]
        if model.lora is None:
            yield Problem("model.lora", f"must be given for {self.name}, which is about adapters; try {{rank: 4}}")
            return
        if model.lora.dora:
            yield Problem("model.lora.dora", f"must be false for {self.name}, got true; leave it out")
        for key, chosen in (("personal", model.personal), ("frozen", [one for one in model.frozen if "lora" in one])):
            if chosen:
                text = f"must be without {chosen[0]!r} for {self.name}, which needs A and B of all clients"
                yield Problem(f"model.{key}", f"{text}; leave it out")
        for group, rank in self.ranks.items():
            if group not in groups:
                text = f"must be the name of a group in `clients`, got {group!r}{nearest(group, groups)}; add the group"
                yield Problem("algorithm.ranks", text)
            elif rank > model.lora.rank:
                text = f"must be at most model.lora.rank, {model.lora.rank}, got {rank}; raise that, or lower this"
                yield Problem(f"algorithm.ranks.{group}", text)

    def init(self, model: Model, population: Population) -> Record:
        if not model.pairs:
            text = f"must leave A and B of some adapter to be trained, because {self.name} multiplies them"
            raise BadInput("model.frozen", f"{text}, got none that are; choose less")
        return {"w": model.w}

    def weigh(self, arrivals: Arrivals, population: Population) -> None:
        return None

    def rank(self, task: Task) -> int:
        """Returns the rank of a client's adapters."""
        return self.ranks.get(task.group or "", task.received.pairs[0].rank)

    def rank_in(self, group: str | None, trip: Trip) -> int:
        """Returns the rank of the adapters of a group's clients, or of those in none."""
        return self.ranks.get(group or "", trip.sizes.adapters[0].rank)


def within(model: Model, rank: int) -> Tensor:
    """Returns the parameters of a model, with zeros in the rows of A and the columns of B beyond a rank."""
    w = model.w.clone()
    for pair in model.pairs:
        a, b = pair.factors(model.w)
        pair.put(w, a[:rank], b[:, :rank])
    return w


def stacked(pair: Pair, models: Tensor, arrivals: Arrivals) -> tuple[Tensor, Tensor]:
    """Returns factors, (outputs, n r) and (n r, inputs), of sum_i p_i B_i A_i, where p_i are shares of samples.

    models: the parameters that clients sent, (n, d).
    """
    factors = [pair.factors(w) for w in models]
    shares = by_samples(arrivals)
    left = torch.cat([b for _, b in factors], 1)
    return left, torch.cat([share * a for share, (a, _) in zip(shares, factors, strict=True)])


def outside(sizes: ModelSizes) -> int:
    """Returns how many parameters belong to no adapter, such as those of the head."""
    return sizes.parameters - sum(one.rank * one.numbers for one in sizes.adapters)
