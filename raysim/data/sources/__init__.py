"""Where samples come from: one source of data a file."""
