"""Runs the command line as `python -m raysim`, for where the program `raysim` is not on the path."""

from raysim.cli.app import main

main()
