"""Errors whose text says all that their reader needs."""


class Told(Exception):
    """An error of a job whose text says all: neither its class nor a traceback is told with it."""
