"""Labels of a cluster's nodes, and Ray's selectors of their values."""

import re
from collections.abc import Mapping


def match(selectors: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether a node has the labels that it must have.

    selectors: for each label a value, "!value", in(a, b) or "!in(a, b)". labels: the node's.
    """
    return all(_fits(selector, labels.get(label)) for label, selector in selectors.items())


def _fits(selector: str, value: str | None) -> bool:
    """Whether a label has a value that a selector wants. value: None if the node lacks the label."""
    wanted = selector.removeprefix("!")
    options = re.split(", ?", wanted[3:-1]) if wanted.startswith("in(") else [wanted]
    return (value in options) != selector.startswith("!")
