"""The sub-module that embeddings enter, which is the head unless another one is named."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn

from raysim.models.names import is_pattern, is_under, nearest
from raysim.parts.errors import BadValue


def head_of(module: nn.Module, name: str | None, personal: tuple[str, ...]) -> nn.Module:
    """Returns the sub-module of a name; if there is none, the first of the personal part or, where nothing is personal
    but by patterns, the last linear layer.

    Raises ValueError if there is none.
    """
    modules: dict[str, nn.Module] = dict(module.named_modules(remove_duplicate=False))
    if name is not None:
        if not name or name not in modules:
            near = nearest(name, [one for one in modules if one])
            raise BadValue(f"task.embed: must be given the name of a sub-module, got {name!r}; nearest are {near}")
        return modules[name]
    if named := [one for one in personal if not is_pattern(one)]:
        names = [name for name, _ in module.named_parameters(remove_duplicate=False)]
        first = next(one for name in names for one in named if is_under(name, (one,)))
        return modules[first] if first in modules else modules[first.rpartition(".")[0]]
    linear = [m for name, m in module.named_modules() if isinstance(m, nn.Linear) and ".lora_" not in name]
    if not linear:
        raise BadValue("task.embed: the model must have a linear layer, or `model.personal`; it has neither")
    return linear[-1]


@contextmanager
def entering(module: nn.Module) -> Iterator[list[Tensor]]:
    """Gives a list to which what enters a sub-module is added whenever that is called."""
    entered: list[Tensor] = []
    hook = module.register_forward_pre_hook(lambda _, given: entered.append(given[0]))
    try:
        yield entered
    finally:
        hook.remove()
