"""Runs with a server."""
