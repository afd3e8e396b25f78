"""Federated deep equilibrium learning (FeDEQ): consensus on a representation, with a head of each client's own.

Le, T. D. Nguyen, T.-A. Nguyen, Hong, Seneviratne, Bao, Tran, Federated deep equilibrium learning: Harnessing compact
global representations to enhance personalization, CIKM 2024, Algorithm 1.

Differences from the paper: duals start at 0, because a random start would push every client by a constant force. The
first average is left out, because all initial models are equal. A client's BatchNorm statistics belong to its theta_i.
What fitting the head changes of them is kept only if the head is fitted to the theta_i that is trained next. Where the
authors' code differs from the paper, options choose between the two. Any model can be trained, with deep equilibrium
layers or without.
"""

from typing import ClassVar, Literal, Self

from pydantic import model_validator

from raysim.algorithms.central import needs_personal
from raysim.algorithms.fedavg import FedAvg, Weights
from raysim.algorithms.fedper import HEAD
from raysim.algorithms.signatures import Arrivals, Direction, Local, Model, Problems, ServerTask, Setting, Task
from raysim.parts.part import Epochs, NonNegative
from raysim.terms import Population, Record, Round


class FeDEQ(FedAvg):
    """ADMM for consensus on the shared part theta; each client keeps its own head w_i (Le et al. 2024).

    The head is `model.personal`. The global model is theta with the initial head. A client predicts with its own
    theta_i and w_i; before it is first picked, with the initial model. One that is `data.unseen` fits a head to the
    last theta.
    """

    keeps_personal: ClassVar[bool] = True
    own_model: ClassVar[dict[str, str]] = {"w": "w", "buffers": "buffers"}

    name: str = "fedeq"
    weights: Weights = "uniform"
    """How updates are weighted; `fedavg` explains the choices. The authors' code takes `samples` for images."""
    rho: NonNegative = 0.01
    """Penalty of the distance of a client's theta_i from theta. The paper tries 0.001 to 10. The authors' code for text
    divides it, and the duals, by the tokens of a batch."""
    head_epochs: Epochs = 3
    """Epochs of training the head, before `local.epochs` of training theta_i."""
    server_rule: Literal["mean", "admm"] = "mean"
    """What the server averages. mean: theta_i, as in the paper; its limit is biased towards the initial theta. admm:
    theta_i + lambda_i / rho, whose mean minimises the augmented Lagrangian."""
    head_on_global: bool = True
    """true: the head is fitted to theta, as in the paper. false: to theta_i, as in the authors' code."""
    reset_local_theta: bool | Literal["after_pause"] = False
    """Where training of theta_i starts. false: where it ended last, as in the paper. true: at theta. after_pause: at
    theta, unless the client also took part in the round before, as in the authors' code."""
    first_dual: float = 0.0
    """Value that all elements of the duals start with. The authors' code takes 0.001 for text, divided as
    `rho` is."""

    @model_validator(mode="after")
    def _rho_divides(self) -> Self:
        if self.server_rule == "admm" and self.rho == 0:
            raise ValueError("rho must be greater than 0 with `server_rule: admm`, which divides by it, got 0")
        return self

    @property
    def trigger(self) -> Round:
        return Round(late="discard", empty=self._counts_rounds)

    def samples_seen(self, local: Local, samples: int) -> int:
        return local.for_epochs(self.head_epochs).total_samples(samples) + local.total_samples(samples)

    def problems(self, scenario: Setting) -> Problems:
        yield from super().problems(scenario)
        yield from needs_personal(scenario)

    def init(self, model: Model, population: Population) -> Record:
        return {**self.starting(model.shared), **({"rounds": model.w.new_zeros(())} if self._counts_rounds else {})}

    def message(self, state: Record) -> Record:
        return {key: state[key] for key in ("w", "rounds") if key in state}

    def client(self, model: Model) -> Record:
        dual = model.shared * 0 + self.first_dual
        state = {"w": model.w, "buffers": model.buffers, "dual": dual}  # w: theta_i, followed by w_i
        return state | ({"last": model.w.new_tensor(-2.0)} if self._counts_rounds else {})

    @property
    def _counts_rounds(self) -> bool:
        """Whether clients must know the round in which they last took part. The server then steps at the end of each
        round, so that its steps count rounds."""
        return self.reset_local_theta == "after_pause"

    def direction(self, state: Record, arrivals: Arrivals, updates: Record, task: ServerTask) -> Direction:
        direction, others = super().direction(state, arrivals, updates, task)
        return direction, others | ({"rounds": state["rounds"] + 1} if self._counts_rounds else {})

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        theta, dual = message["w"], state["dual"]
        own = self.own(task, state)
        on_global = task.received.replace(personal=own.personal)
        keeps = message["rounds"] == state["last"] + 1 if self._counts_rounds else not self.reset_local_theta
        start = own if keeps else on_global
        at = on_global if self.head_on_global else start
        fitted = self._fit_head(task, at)
        start = fitted if at is start else start.replace(personal=fitted.personal)
        trained = task.train(start, part="shared", correction=lambda v: dual + self.rho * (v - theta))
        moved = trained.model.shared - theta
        dual = dual + self.rho * moved
        sent = moved + dual / self.rho if self.server_rule == "admm" else moved
        after = {"w": trained.w, "buffers": trained.model.buffers, "dual": dual}
        return trained.send(delta=sent), after | ({"last": message["rounds"]} if self._counts_rounds else {})

    def _fit_head(self, task: Task, start: Model) -> Model:
        return task.train(start, part="personal", epochs=self.head_epochs, stream=HEAD).model

    def adapt(self, task: Task, message: Record, state: Record) -> Record:
        fitted = self._fit_head(task, task.received)
        return {**state, "w": fitted.w, "buffers": task.received.replace(personal=fitted.personal).buffers}
