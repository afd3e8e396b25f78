"""Optimisers: what moves the parameters in a training, given gradients. To add one, put it into `OPTIMIZERS`."""

from abc import abstractmethod
from typing import ClassVar, Self, Union

from pydantic import model_validator

from raysim.parts.lazy import torch
from raysim.parts.part import Decay, Fraction, NonNegative, Positive
from raysim.schedules import Schedulable
from raysim.terms import Tensor

State = dict[str, "Tensor"]  # vectors (n,) by name
Number = Union[float, "Tensor"]


class Optimizer(Schedulable):
    """How a gradient moves the parameters. A subclass adds its `name`, `init` if it has a state, and `move`."""

    decoupled: ClassVar[bool] = False
    """Whether weight decay shrinks the parameters themselves. Otherwise it is added to the gradient."""

    name: str
    keep: bool = False
    """Whether each client or peer keeps the state from one training to the next, as part of its own state. Otherwise
    every training starts afresh. Only trainings of stream 0, which is the default of `task.train`, use it."""

    @property
    def captures(self) -> bool:
        """Whether `move` also takes 0-d tensors as `lr` and `taken`, as CUDA graphs need: it is one of raysim's own."""
        return type(self) in OPTIMIZERS

    def init(self, w: Tensor) -> State:
        """Returns the state before the first step: vectors like w, (n,), or none."""
        return {}

    @abstractmethod
    def move(self, w: Tensor, gradient: Tensor, state: State, lr: Number, taken: Number) -> None:
        """Takes a step: changes w, (n,), and the state in place. The gradient, (n,), may be overwritten.

        taken: how many steps were taken since `init`.
        """


def add(vector: Tensor, other: Tensor, factor: Number) -> Tensor:
    """Adds a factor times another vector to a vector, in place, rounded once: a tensor as factor has the same bits."""
    if isinstance(factor, int | float):
        return vector.add_(other, alpha=factor)
    return vector.addcmul_(other, factor)


class SGD(Optimizer):
    """Stochastic gradient descent, with heavy-ball or Nesterov momentum, as torch.optim.SGD."""

    name: str = "sgd"
    momentum: Fraction = 0.0
    """In each step, the momentum buffer is multiplied by this, and the gradient is added to it. 0: no momentum."""
    dampening: Fraction = 0.0
    """From the second step on, the gradient is multiplied by 1 minus this before it is added to the buffer."""
    nesterov: bool = False
    """Whether the step is along the gradient plus `momentum` times the buffer, instead of along the buffer."""

    @model_validator(mode="after")
    def _looks_ahead(self) -> Self:
        if self.nesterov and (not self.momentum or self.dampening):
            raise ValueError("nesterov needs a momentum above 0 and a dampening of 0; set them, or leave nesterov out")
        if self.dampening and not self.momentum:
            raise ValueError("dampening needs a momentum above 0; set it, or leave dampening out")
        return self

    def init(self, w: Tensor) -> State:
        # -0, to which adding the first gradient gives its very bits.
        return {"momentum": w.new_full(w.shape, -0.0)} if self.momentum else {}

    def move(self, w: Tensor, gradient: Tensor, state: State, lr: Number, taken: Number) -> None:
        if self.momentum:
            buffer = add(state["momentum"].mul_(self.momentum), gradient, 1 - self.dampening * (taken > 0))
            gradient = gradient.add_(buffer, alpha=self.momentum) if self.nesterov else buffer
        add(w, gradient, -lr)


class Adam(Optimizer):
    """Adam, as torch.optim.Adam with fused=True: weight decay is added to the gradient (Kingma and Ba, ICLR 2015)."""

    name: str = "adam"
    betas: tuple[Decay, Decay] = (0.9, 0.999)
    """Decay of the running means of the gradient and of its square."""
    eps: Positive = 1e-8
    """Added to the root in the denominator."""

    def init(self, w: Tensor) -> State:
        return {"mean": w.new_zeros(w.shape), "square": w.new_zeros(w.shape)}

    def move(self, w: Tensor, gradient: Tensor, state: State, lr: Number, taken: Number, decay: float = 0.0) -> None:
        """As in `Optimizer`. decay: w is multiplied by 1 - lr * decay before."""
        # One pass over memory; operation by operation takes six times as long on 11 million parameters.
        torch._fused_adamw_(
            [w],
            [gradient],
            [state["mean"]],
            [state["square"]],
            [],
            [torch.as_tensor(taken + 1.0, dtype=torch.float32, device=w.device)],
            lr=lr,
            beta1=self.betas[0],
            beta2=self.betas[1],
            weight_decay=decay,
            eps=self.eps,
            amsgrad=False,
            maximize=False,
        )


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters by lr * weight_decay (Loshchilov and Hutter, ICLR 2019)."""

    decoupled: ClassVar[bool] = True

    name: str = "adamw"


class Adagrad(Optimizer):
    """Adagrad, as torch.optim.Adagrad: steps shrink with the sum of squared gradients (Duchi et al., JMLR 2011)."""

    name: str = "adagrad"
    initial: NonNegative = 0.0
    """Where the sums of squared gradients start."""
    eps: Positive = 1e-10
    """Added to the root in the denominator."""

    def init(self, w: Tensor) -> State:
        return {"sum": w.new_full(w.shape, self.initial)}

    def move(self, w: Tensor, gradient: Tensor, state: State, lr: Number, taken: Number) -> None:
        total = state["sum"].addcmul_(gradient, gradient)
        w.addcdiv_(gradient.mul_(lr), total.sqrt().add_(self.eps), value=-1)


class RMSprop(Optimizer):
    """RMSprop, as torch.optim.RMSprop: the gradient over the root of its running mean square.

    Hinton, Neural networks for machine learning, lecture 6e, 2012.
    """

    name: str = "rmsprop"
    alpha: Decay = 0.99
    """Decay of the running mean of the squared gradient and, if `centered`, of the running mean of the gradient."""
    eps: Positive = 1e-8
    """Added to the root in the denominator."""
    momentum: Fraction = 0.0
    """Heavy-ball momentum of the steps. 0: none."""
    centered: bool = False
    """Whether the square of the running mean is subtracted from the running mean square, which gives a variance."""

    def init(self, w: Tensor) -> State:
        names = ["square", *(["mean"] if self.centered else []), *(["momentum"] if self.momentum else [])]
        return {name: w.new_zeros(w.shape) for name in names}

    def move(self, w: Tensor, gradient: Tensor, state: State, lr: Number, taken: Number) -> None:
        spread = state["square"].mul_(self.alpha).addcmul_(gradient, gradient, value=1 - self.alpha)
        if self.centered:
            mean = state["mean"].lerp_(gradient, 1 - self.alpha)
            spread = spread.addcmul(mean, mean, value=-1)
        root = spread.sqrt().add_(self.eps)
        if self.momentum:
            add(w, state["momentum"].mul_(self.momentum).addcdiv_(gradient, root), -lr)
        else:
            w.addcdiv_(gradient.mul_(lr), root, value=-1)


OPTIMIZERS: tuple[type[Optimizer], ...] = (SGD, Adam, AdamW, Adagrad, RMSprop)
