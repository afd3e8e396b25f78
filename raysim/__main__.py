"""`python -m raysim`."""

from raysim.cli.app import main

main()
