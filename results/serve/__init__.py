"""A live page over a folder of runs, for a browser: it only reads."""

from results.serve.app import application

__all__ = ["application"]
