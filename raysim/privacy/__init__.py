"""Noise on the sums of what clients send, and what it guarantees to each of them."""

from raysim.privacy.exposure import Exposure
from raysim.privacy.release import Normal, Release

__all__ = ["Exposure", "Normal", "Release"]
