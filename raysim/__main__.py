"""`python -m raysim`."""

from raysim.cli import main

main()
