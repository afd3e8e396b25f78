"""Runs of algorithms with a server, which dispatches clients and steps with their updates."""
