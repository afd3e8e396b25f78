"""A node of a cluster, with the result of a call that was made there."""

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
