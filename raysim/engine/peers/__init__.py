"""Runs of peers, without a server."""
