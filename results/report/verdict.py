"""What a report begins with: a sentence on which method is best, and the methods from the best to the worst."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from results.groups import RunGroup
from results.ranking import SIGNIFICANT, Ranked, rank
from results.report.section import PageRow, PageTable
from results.report.standings import Standings
from results.texts import count

_SETTINGS = 4  # of more, no sentence tells each
_HEADS = ("", "{metric}", "95 % interval", "seeds", "difference to the best", "p", "runs that count")


@dataclass(frozen=True)
class Verdict:
    """Which method is best."""

    sentences: tuple[str, ...]
    tables: tuple[PageTable, ...]
    """A ranking for each setting."""
    text: str
    """How to read the tables."""


def verdict(found: Standings) -> Verdict:
    """Ranks the groups of each setting at equal virtual time or, where that is not in seconds, after equal rounds."""
    sentences, tables, best = [], [], Counter[tuple[str, bool]]()
    settings = found.groups.settings
    for setting, groups in settings.items():
        ranked = rank([found.by_seed(group) for group in groups], found.larger)
        text = " ".join(_sentences(found, groups, ranked))
        sentences.append(f"With {setting}: {text}" if setting else text)
        best[groups[ranked[0].case].method, len(ranked) > 1 and ranked[1].worse] += 1
        tables.append(_table(found, setting, groups, ranked))
    if len(settings) > _SETTINGS:
        sentences = [*_summed_up(found, best, len(settings))]
    sentences += _missing(found)
    return Verdict(tuple(sentences), tuple(tables), _text(found))


def _sentences(found: Standings, groups: Sequence[RunGroup], ranked: Sequence[Ranked]) -> Iterator[str]:
    names = [groups[one.case].method if len(found.groups.settings) > 1 else groups[one.case].label for one in ranked]
    best = ranked[0]
    if math.isnan(best.mean):
        yield f"No run that is over has a number of {found.name} {found.where}."
        return
    if len(ranked) == 1:
        interval = "" if math.isnan(best.low) else f" [{best.low:.4g}, {best.high:.4g}]"
        yield f"{names[0]} has {found.name} {best.mean:.4g}{interval} {found.where}, over {count(best.runs, 'seed')}."
        return
    comparisons = sum(not math.isnan(one.p) for one in ranked)
    corrected = f"Holm-corrected over {count(comparisons, 'comparison')}"
    second = ranked[1]
    if not second.test:
        fewest = min(best.runs, second.runs)
        yield (
            f"The runs cannot tell which is best: a test needs two seeds of each method, got "
            f"{fewest or 'none that counts'}. {names[0]} has the best {found.name} {found.where}, {best.mean:.4g}."
        )
        return
    if second.worse:
        yield f"{names[0]} beats {names[1]} by {_by(found, second)}, {corrected}."
        others = [one for one in ranked[2:] if one.test]
        if beaten := sum(one.worse for one in others):
            some = f"{beaten} of " if beaten < len(others) else ""
            yield f"It beats {some}the {count(len(others), 'other')}, too."
        return
    if math.isnan(second.p):
        apart = f"with each seed, they differ by {abs(second.difference):.3g} in {found.name} {found.where}"
        yield f"The runs cannot tell {names[0]} from {names[1]}: {apart}."
    else:
        yield (
            f"The runs cannot tell {names[0]} from {names[1]}, which are best: they differ by {_by(found, second)}, "
            f"{corrected}, with {count(min(best.runs, second.runs), 'seed')} of each."
        )
    for name, one in zip(names[2:], ranked[2:], strict=True):
        if one.worse:
            yield f"{names[0]} beats {name} by {_by(found, one, where=False)}."
            return


def _by(found: Standings, one: Ranked, where: bool = True) -> str:
    """Returns by how much the best case is better than another: a positive number where it is."""
    sign = -found.sign
    low, high = sorted((sign * one.difference_low, sign * one.difference_high))
    place = f" in {found.name} {found.where}" if where else ""
    return f"{sign * one.difference:.3g} [{low:.3g}, {high:.3g}]{place}, p = {one.p:.2g}"


def _summed_up(found: Standings, best: Counter[tuple[str, bool]], settings: int) -> Iterator[str]:
    for method in dict.fromkeys(method for method, _ in best):
        surely = best[method, True]
        yield (
            f"{method} has the best {found.name} {found.where} in {surely + best[method, False]} of {settings} "
            f"settings, beyond chance in {surely} of them (p < {SIGNIFICANT:.2g}, Holm-corrected in each)."
        )


def _missing(found: Standings) -> Iterator[str]:
    """Yields a sentence on each group some of whose runs do not count."""
    for group in found.groups.groups:
        lost = [run for run in group.drawn if run not in found.counted[group.place]]
        if lost:
            states = ", ".join(f"{number} {state}" for state, number in Counter(run.standing for run in lost).items())
            runs = count(len(group.drawn), "run")
            yield f"Of {group.label}, {len(lost)} of {runs} left out: {states}."


def _table(found: Standings, setting: str, groups: Sequence[RunGroup], ranked: Sequence[Ranked]) -> PageTable:
    rows = []
    for one in ranked:
        group = groups[one.case]
        interval = "-" if math.isnan(one.low) else f"{one.low:.4f} to {one.high:.4f}"
        apart = "-"
        if one is not ranked[0] and not math.isnan(one.difference):
            apart = f"{one.difference:+.4f}"
            if one.test:
                apart += f" [{one.difference_low:+.4f}, {one.difference_high:+.4f}]"
            apart += " (unpaired)" if one.test == "Welch" else ""
        states = Counter(run.standing for run in group.drawn if run not in found.counted[group.place])
        lost = "".join(f", {number} {state}" for state, number in states.items())
        runs = f"{one.runs} of {len(group.drawn)}{lost}"
        p = "-" if math.isnan(one.p) else f"{one.p:.2g}{' *' if one.worse else ''}"
        mean = "-" if math.isnan(one.mean) else f"{one.mean:.4f}"
        name = group.method if len(found.groups.settings) > 1 else group.label
        rows.append(PageRow((name, mean, interval, str(one.runs), apart, p, runs), group.look.hue))
    return PageTable(setting, tuple(head.format(metric=found.name) for head in _HEADS), tuple(rows))


def _text(found: Standings) -> str:
    subject = "mean over the peers' own models" if found.groups.drawn.subject == "peer" else "global model"
    return (
        f"Last evaluation on test samples of the {subject} {found.where}, the most that all runs that are over have "
        "reached. Differences are seed by seed (paired t-test; unpaired, Welch's test where seeds differ), and p is "
        f"corrected by Holm for all comparisons with the best; * marks p < {SIGNIFICANT:.2g}."
    )
