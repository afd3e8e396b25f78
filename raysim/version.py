"""The version of raysim, which the package's metadata take from here."""

__version__ = "0.1.0"
