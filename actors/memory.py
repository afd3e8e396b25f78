"""Which errors say that memory ran out."""

from typing import Literal

Memory = Literal["gpu", "node"]


def exhausted(error: BaseException) -> Memory | None:
    """Returns whether an error says that the memory of a GPU or of the node ran out; None if it says neither."""
    if type(error).__name__ == "OutOfMemoryError":  # torch's, which may not be loaded here
        return "gpu"
    if isinstance(error, MemoryError) or "DefaultCPUAllocator: can't allocate memory" in str(error):
        return "node"
    return None


def brief(error: Exception) -> str:
    """Returns the first part of Ray's message about a node that is low on memory. The rest lists all processes and
    gives advice."""
    return " ".join(str(error).partition("OOM kill reason")[0].split())
