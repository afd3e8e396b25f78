"""Nodes of a cluster: what one answered to a call, and whether its labels are those that are asked for."""

import re
from collections.abc import Mapping
from typing import Generic, NamedTuple, TypeVar

Answer = TypeVar("Answer")


class OnNode(NamedTuple, Generic[Answer]):
    """A node, and what it answered."""

    address: str
    is_driver: bool  # whether it is the node of the process that asks
    resources: Mapping[str, float]  # that Ray shares out: CPU, GPU, own ones, memory and object_store_memory in bytes
    labels: Mapping[str, str]
    answer: Answer | None  # None if the call failed
    error: str = ""  # the reason if the call failed


def has_labels(selectors: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether a node has the labels that it must have.

    selectors: for each label a value, "!value", in(a, b) or "!in(a, b)". labels: the node's.
    """
    return all(_fits(selector, labels.get(label)) for label, selector in selectors.items())


def _fits(selector: str, value: str | None) -> bool:
    """Whether a label has a value that a selector wants. value: None if the node lacks the label."""
    wanted = selector.removeprefix("!")
    options = re.split(", ?", wanted[3:-1]) if wanted.startswith("in(") else [wanted]
    return (value in options) != selector.startswith("!")
