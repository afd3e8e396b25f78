"""The command line: `app` is where it starts, and each other module holds the commands of one noun."""
