"""The command line. It starts in `app`; each other module holds the commands about one thing."""
