"""The fields of small classes of values, as their source says them, with the comments beside them."""

from __future__ import annotations

import inspect
import re
from importlib import import_module


def fields(path: str) -> str:
    """The head of a class's source, up to its first method. path: such as raysim.algorithms.Arrival."""
    module, _, name = path.rpartition(".")
    source = inspect.getsource(getattr(import_module(module), name))
    head = re.split(r"\n\s*(?:@property|def |@classmethod|@staticmethod)", source)[0]
    documented = re.sub(r'\n    """.*?"""\n', "\n", head, count=1, flags=re.DOTALL)  # which stands above already
    lines = [line for line in documented.splitlines() if line.strip()]
    return "```python\n" + "\n".join(lines) + "\n```"
