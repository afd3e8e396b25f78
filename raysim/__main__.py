"""Where the program `raysim` starts, and `python -m raysim`, for where the program is not on the path."""

from raysim.cli.app import main

if __name__ == "__main__":
    main()
