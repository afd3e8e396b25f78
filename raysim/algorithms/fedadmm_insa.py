"""Consensus ADMM with a server, with inexact subproblems and adaptive penalties (FedADMM-InSa).

Song, Wang, Zuazua, FedADMM-InSa: An inexact and self-adaptive ADMM for federated learning, arXiv 2402.13989v1,
Algorithm 3. Numbers in brackets are its equations. The paper's primal residual p_i (3.14a) is how far a client moved,
times its penalty, and its dual residual d_i (3.14b) is how far the client is from z. mu = 5 and tau = 2 are those of
the authors' code.

Differences from the paper: those of `fedadmm_in`. An update also holds the change of the client's penalty, which takes
4 bytes. With `penalties: current` it also holds by how much the next penalty changes the server's sums. A server that
stores every u_i could compute that itself.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from raysim.algorithms.fedadmm_in import FedADMMIn
from raysim.algorithms.signatures import Arrivals, Model, Population, Record, Task
from raysim.parts.lazy import torch

Factor = Annotated[float, Field(ge=1)]


class FedADMMInSa(FedADMMIn):
    """FedADMM-In whose clients also adapt their penalties, which start at `beta` (Song et al. 2024).

    In the table `updates`, `penalty` is the one that an update used, and `next_penalty` the one that the client has
    adapted to after it. `raysim report` draws the penalties of all clients from them.
    """

    name: str = "fedadmm_insa"
    mu: Factor = 5.0
    """A client's penalty changes if one of p_i and d_i is more than mu times the other (3.15)."""
    tau: Factor = 2.0
    """The factor by which a penalty grows or shrinks (3.15). 1: it never changes."""
    penalties: Literal["last", "current"] = "last"
    """Which penalty of a client that is not in the step z is computed with (2.12). last: that of its last update.
    current: the one that it has adapted to after that, as in the authors' code."""

    @model_validator(mode="after")
    def _counts_all(self) -> Self:
        if self.penalties == "current" and self.aggregate == "selected":
            text = "penalties must be last with `aggregate: selected`, because then no other client counts, got current"
            raise ValueError(f"{text}; leave it out, or take `aggregate: all`")
        return self

    def init(self, model: Model, population: Population) -> Record:
        scale = model.w.new_tensor(self.beta)  # sum_i alpha_i beta_i
        return {**super().init(model, population), "scale": scale}

    def client(self, model: Model) -> Record:
        beta = model.w.new_tensor(self.beta)
        return {
            **super().client(model),
            "beta": beta,
            "last": beta,
        }  # the penalty of the next update, and the one that the server's sums hold

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        beta, last = state["beta"], state["last"]
        update, after = self._work(task, message["w"], state, beta, last)
        p = beta * (after["u"] - state["u"]).norm()
        d = (after["u"] - message["w"]).norm()
        adapted = torch.where(self.mu * d < p, beta / self.tau, beta)
        adapted = torch.where(self.mu * p < d, beta * self.tau, adapted)
        task.log(next_penalty=adapted)
        update["scale"] = self._news(beta, last)
        if self.penalties == "last":
            return update, {**after, "beta": adapted, "last": beta}
        later = {"later_term": (adapted - beta) * after["u"], "later_scale": adapted - beta}
        return {**update, **later}, {**after, "beta": adapted, "last": adapted}

    def step(self, state: Record, arrivals: Arrivals, updates: Record, task: Task) -> Record:
        after = super().step(state, arrivals, updates, task)
        if self.penalties == "last":
            return after
        return {**after, **{key: after[key] + updates[f"later_{key}"] for key in ("term", "scale")}}
