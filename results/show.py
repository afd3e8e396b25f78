"""Renders a run's summary for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.filesize import decimal
from rich.table import Column, Table
from rich.text import Text

from results import html
from results.summary import Score, Summary
from results.texts import count

_COLOURS = {"finished": "green", "running": "yellow", "interrupted": "yellow"}  # statuses that are not here are red
_HEADINGS = ("", "split", "metric", "first", "best", "at step", "last", "lowest", "highest")


def render(summary: Summary) -> RenderableType:
    """Renders a summary for `rich.console.Console.print`."""
    title = Text.assemble(
        (summary.name or summary.run, "bold"), "  ", (summary.status, _COLOURS.get(summary.status, "red"))
    )
    facts = Table.grid(Column(), Column(overflow="fold"), padding=(0, 2))  # else a long path would be cut short
    for name, value in _facts(summary):
        facts.add_row(Text(name, style="dim"), Text(value))
    if not summary.scores:
        return Group(title, facts)
    heads, rows = _scores(summary)
    scores = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    for place, head in enumerate(heads):
        scores.add_column(head, justify="left" if place < 3 else "right")
    for row in rows:
        scores.add_row(*map(Text, row))
    return Group(title, facts, Text(), scores)


def render_html(summary: Summary) -> str:
    """Renders a summary for a notebook."""
    scores = html.table(*_scores(summary), words=3) if summary.scores else ""
    facts = html.table((), _facts(summary), words=2)
    return html.heading(summary.name or summary.run, summary.status) + facts + scores


def _scores(summary: Summary) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Returns the heads and the rows of the table of scores."""
    shown = None if any(score.members for score in summary.scores) else -2  # the last two columns are about members
    return _HEADINGS[:shown], [_cells(score)[:shown] for score in summary.scores]


def _facts(summary: Summary) -> Iterator[tuple[str, str]]:
    if summary.note:
        yield "note", summary.note
    if summary.status == "finished" and not summary.steps:
        yield "note", "the server never stepped, so the model is still the initial one"
    for note in summary.notes:
        yield "note", note
    if summary.error:
        yield "error", summary.error
    if summary.history:
        yield "history", summary.history
    if summary.ended_by:
        yield "ended by", summary.ended_by
    if summary.ended_early:
        yield "ended early", summary.ended_early
    if summary.left:
        yield "left", summary.left
    if summary.best:
        yield "best", summary.best
    if summary.diverged:
        yield "diverged", summary.diverged
        yield "mostly helps", summary.cure or ""
    whom = "clients" if summary.topology is None else f"peers ({summary.topology})"
    clients = None if summary.clients is None else f"{summary.clients} {whom}"
    seed = None if summary.seed is None else f"seed {summary.seed}"
    if scenario := _joined(summary.algorithm, summary.data, clients, summary.model, seed):
        yield "scenario", scenario
    yield (
        "done",
        _joined(
            count(summary.rounds, "round"),
            count(summary.steps, "step"),
            f"virtual time {_number(summary.virtual_time)} {summary.unit or ''}".rstrip(),
            None if summary.wall_s is None else f"{summary.wall_s:.1f} s real time",
        ),
    )
    if summary.messages is None:
        yield "updates", _joined(*(f"{count} {status}" for status, count in summary.updates.items()))
    else:
        yield "mixed", f"{summary.updates['used']} times, {summary.messages} messages sent, {summary.lost} lost"
    if summary.staleness_mean is not None:
        yield "staleness", f"mean {_number(summary.staleness_mean)}, largest {_number(summary.staleness_max)}"
    if summary.solver_iterations is not None:
        iterations = _number(summary.solver_iterations)
        yield "solves", f"{iterations} iterations on average in training, {summary.unconverged} did not converge"
    if summary.up_bytes is not None and summary.down_bytes is not None:
        yield "sent", f"{decimal(summary.up_bytes)} up, {decimal(summary.down_bytes)} down"
    if summary.digest:
        yield "digest", summary.digest


def _cells(score: Score) -> tuple[str, ...]:
    plural = score.subject if score.subject == "unseen" else f"{score.subject}s"
    subject = score.subject if score.members is None else f"{score.members} {plural}"
    numbers = (score.first, score.best, score.best_step, score.last, score.lowest, score.highest)
    return subject, score.split, score.metric, *map(_number, numbers)


def _joined(*facts: str | None) -> str:
    return ", ".join(fact for fact in facts if fact)


def _number(value: float | None) -> str:
    return "-" if value is None else str(value) if isinstance(value, int) else f"{value:.4g}"
