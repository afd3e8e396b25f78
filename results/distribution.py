"""What pip calls raysim, whose distribution has another name than its package."""

DISTRIBUTION = "raysim-fl"


def extra(name: str) -> str:
    """Returns the command that installs an optional dependency of raysim."""
    return f"pip install '{DISTRIBUTION}[{name}]'"
