"""The nodes of a Ray cluster that actors may be on."""

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field

from actors.labels import match
from raysim.parts.errors import quoted
from raysim.parts.part import Part, Positive

_WORD = r"[a-zA-Z0-9](?:[a-zA-Z0-9_.-]{0,61}[a-zA-Z0-9])?"  # Ray's labels follow the syntax of those of Kubernetes
_LABEL = re.compile(rf"(?:[a-zA-Z0-9.-]{{1,253}}/)?{_WORD}")
_SELECTOR = re.compile(rf"!?(?:{_WORD}|in\({_WORD}(?:, ?{_WORD})*\))")
_ASKED_ELSEWHERE = ("CPU", "GPU", "memory", "object_store_memory")


def _label(text: str) -> str:
    if not _LABEL.fullmatch(text):
        raise ValueError(f"must be the name of a label, such as disk or ray.io/accelerator-type, got {quoted(text)}")
    return text


def _selector(text: str) -> str:
    if not _SELECTOR.fullmatch(text):
        raise ValueError(f'must be a value of the label, "!value", in(a, b) or "!in(a, b)", got {quoted(text)}')
    return text


def _custom(name: str) -> str:
    if not name or name in _ASKED_ELSEWHERE:
        hint = "; CPUs and GPUs have keys of their own, such as cpus_per_client" if name in ("CPU", "GPU") else ""
        raise ValueError(f"must be the name of a custom resource, such as fast_disk, got {quoted(name)}{hint}")
    return name


Label = Annotated[str, AfterValidator(_label)]
Selector = Annotated[str, AfterValidator(_selector)]
Custom = Annotated[str, AfterValidator(_custom)]


class Nodes(Part):
    """Which nodes of a cluster may host an actor, and what it takes there beside CPUs and GPUs."""

    labels: dict[Label, Selector] = Field(default_factory=dict)
    """Labels that a node must have, as `ray start --labels` sets them: for each a value, "!value", in(a, b) or
    "!in(a, b)". Ray itself sets some, such as `ray.io/accelerator-type`, the model of the GPUs."""
    custom: dict[Custom, Positive] = Field(default_factory=dict)
    """Custom resources that each actor takes, as `ray start --resources` declares them, such as {fast_disk: 1}."""

    def allow(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels has those that it must have."""
        return match(self.labels, labels)
