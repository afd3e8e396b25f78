"""Runs of algorithms without a server, in which peers train and mix their models."""
