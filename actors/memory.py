"""Which errors say that memory ran out."""

from typing import Literal

Memory = Literal["gpu", "node"]


def exhausted(error: BaseException) -> Memory | None:
    """Returns whose memory ran out, if an error says so: that of a GPU, or that of the node."""
    if type(error).__name__ == "OutOfMemoryError":  # torch's, which may not be loaded here
        return "gpu"
    if isinstance(error, MemoryError) or "DefaultCPUAllocator: can't allocate memory" in str(error):
        return "node"
    return None


def brief(error: Exception) -> str:
    """Returns what Ray says of a node that ran low on memory, without what follows: all processes there, and advice."""
    return " ".join(str(error).partition("OOM kill reason")[0].split())
