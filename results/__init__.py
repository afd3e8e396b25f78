"""What happened: the tables of a run, their writer, their reader and a summary."""

from results.reader import NotARun, Run, open_run
from results.schemas import TABLES, is_wall
from results.summary import Score, Summary, summary
from results.writer import Writer, write_json

__all__ = ["TABLES", "NotARun", "Run", "Score", "Summary", "Writer", "is_wall", "open_run", "summary", "write_json"]
