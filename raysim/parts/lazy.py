"""Libraries that take long to load, and that the scheduler and checks of scenarios need seldom or never: each is loaded
when something of it is first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import networkx as networkx
    import torch as torch
else:

    class Lazy:
        """A module that is not loaded yet."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            return getattr(import_module(self._name), attribute)

    networkx, torch = Lazy("networkx"), Lazy("torch")
