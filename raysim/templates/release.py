"""Noise on the server's sums: say here what it does."""

from raysim.privacy import Normal, Release
from raysim.terms import Record, Tensor


class ReleaseTemplate(Release):
    """Adds Gaussian noise that is drawn anew in each step."""

    name: str = "template"

    def draw(self, version: int, kept: Record, normal: Normal) -> tuple[Tensor, Record]:
        return normal(version), {}  # a standard deviation of 1, and what the server keeps for the next step
