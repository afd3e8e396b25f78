"""Training on one client's samples. Only the settings are loaded here: they need no torch."""

from raysim.local.settings import Local

__all__ = ["Local"]
