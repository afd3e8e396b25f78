"""Libraries that take long to load, and that the scheduler and checks of scenarios need seldom or never: each is loaded
when something of it is first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import networkx as networkx
    import torch as torch
else:

    class Lazy:
        """A module that is loaded when something of it is first used."""

        def __init__(self, name: str) -> None:
            self._name, self._module = name, None

        def __getattr__(self, attribute: str) -> Any:
            if self._module is None:
                self._module = import_module(self._name)
            return getattr(self._module, attribute)

    networkx, torch = Lazy("networkx"), Lazy("torch")
