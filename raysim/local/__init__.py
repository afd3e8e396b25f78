"""Training on one client's samples. This file loads only the settings, which need no torch."""

from raysim.local.settings import Local

__all__ = ["Local"]
