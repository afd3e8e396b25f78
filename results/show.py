"""Renders a run's summary for a terminal of 80 columns."""

from rich.console import Group, RenderableType
from rich.filesize import decimal
from rich.table import Column, Table
from rich.text import Text

from results import html
from results.summary import Score, Summary
from results.texts import count

_HEADINGS = ("", "split", "metric", "first", "best", "at step", "last", "lowest", "highest")


def render(summary: Summary) -> RenderableType:
    """Renders a summary for `rich.console.Console.print`."""
    title = Text.assemble((summary.name or summary.run, "bold"), "  ", (summary.status, summary.status.colour))
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


def _facts(found: Summary) -> list[tuple[str, str]]:
    """Returns what is told above the scores, each with its name."""
    idle = found.status == "finished" and not found.steps
    whom = "clients" if found.topology is None else f"peers ({found.topology})"
    of_scenario = (
        found.algorithm,
        found.data,
        None if found.clients is None else f"{found.clients} {whom}",
        found.model,
        None if found.seed is None else f"seed {found.seed}",
    )
    done = (
        count(found.rounds, "round"),
        count(found.steps, "step"),
        f"virtual time {_number(found.virtual_time)} {found.unit or ''}".rstrip(),
        None if found.wall_s is None else f"{found.wall_s:.1f} s real time",
    )
    if found.messages is None:
        became = "updates", _joined(*(f"{count} {status}" for status, count in found.updates.items()))
    else:
        became = "mixed", f"{found.updates['used']} times, {found.messages} messages sent, {found.lost} lost"
    aged = f"mean {_number(found.staleness_mean)}, largest {_number(found.staleness_max)}"
    solved = (
        f"{_number(found.solver_iterations)} iterations on average in training, {found.unconverged} did not converge"
    )
    sent = None
    if found.up_bytes is not None and found.down_bytes is not None:
        sent = f"{decimal(found.up_bytes)} up, {decimal(found.down_bytes)} down"
    named = [
        ("note", found.note),
        ("note", "the server never stepped, so the model is still the initial one" if idle else None),
        *(("note", note) for note in found.notes),
        ("error", found.error),
        ("history", found.history),
        ("ended by", found.ended_by),
        ("ended early", found.ended_early),
        ("left", found.left),
        ("best", found.best),
        ("diverged", found.diverged),
        ("mostly helps", found.cure),
        ("scenario", _joined(*of_scenario)),
        ("done", _joined(*done)),
        became,
        ("staleness", None if found.staleness_mean is None else aged),
        ("solves", None if found.solver_iterations is None else solved),
        ("sent", sent),
        ("digest", found.digest),
    ]
    return [(name, text) for name, text in named if text]


def _cells(score: Score) -> tuple[str, ...]:
    plural = score.subject if score.subject == "unseen" else f"{score.subject}s"
    subject = score.subject if score.members is None else f"{score.members} {plural}"
    numbers = (score.first, score.best, score.best_step, score.last, score.lowest, score.highest)
    return subject, score.split, score.metric, *map(_number, numbers)


def _joined(*facts: str | None) -> str:
    return ", ".join(fact for fact in facts if fact)


def _number(value: float | None) -> str:
    return "-" if value is None else str(value) if isinstance(value, int) else f"{value:.4g}"
