"""Compares runs seed by seed: the difference of each case from a baseline, with confidence intervals.

All draws of a run are keyed by its seed. Two algorithms on one scenario with the same seed therefore see the same
clients, delays and batches, and the luck of the seed is in both numbers. Their difference is free of it, so its
interval is narrower than one from two groups of seeds that have nothing in common (Welch 1947).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from results.compare import Comparison, about
from results.counted import Values, beyond, counted_runs, counting, key_axes, members, note_short
from results.groups import with_names_of_parts
from results.info import range_of
from results.measure import Measure, NotComparable
from results.ranking import difference, holm
from results.reader import Run
from results.run_set import RunSet
from results.score import Censored, score
from results.texts import count, short_names, written


def paired(
    runs: RunSet, by: Iterable[str] | None, baseline: Sequence[str], measure: Measure, unfinished: bool
) -> Comparison:
    """Pairs each case with the baseline by seed; see `Runs.compare` for the arguments.

    Raises UnknownKey; NotARun; NotComparable where runs differ in more than their seed and the keys `by`, or where
    there is no such baseline or nothing to pair with it.
    """
    counted, notes = counted_runs(runs, unfinished)
    keys, _ = key_axes(counted, by, ())
    _require_one_scenario(counted, keys)
    found = counting(counted, keys, notes)
    briefs = with_names_of_parts(keys, [dict(zip(keys, values, strict=True)) for values in found])
    groups = {tuple(brief.values()): group for brief, group in zip(briefs, found.values(), strict=True)}
    chosen = _chosen(keys, list(groups), baseline)
    ordered = runs.only(run for group in groups.values() for run in group)
    numbers = score(ordered, measure)
    notes += note_short(ordered, measure)
    rows = []
    for values, other in _cases(keys, list(groups), chosen, notes):
        pairs = _pairs(groups[values], groups[other], notes)
        of_case = dict(zip(keys, values, strict=True)) | {"baseline": _as_text(keys, other)}
        for metric, of_runs in numbers.items():
            low, high = range_of(metric)
            made = difference(*_found(f"{_as_text(keys, values)}: ", metric, pairs, of_runs, notes))
            made = made._replace(low=max(made.low, low - high), high=min(made.high, high - low))
            rows.append({**of_case, "metric": metric, **made._asdict()})
    import pandas as pd

    frame = pd.DataFrame(rows)
    frame["p_holm"] = frame.groupby("metric", sort=False)["p"].transform(lambda values: holm(list(values)))
    _, what, usual = about(counted, keys, (), groups) if "name" in keys else ({}, {}, "")
    return Comparison(frame, tuple(keys), measure, tuple(dict.fromkeys(notes)), paired=True, what=what, usual=usual)


# --- who is paired with whom ------------------------------------------------------------------------------------------


def _require_one_scenario(runs: RunSet, keys: list[str]) -> None:
    """Raises NotComparable if runs differ in a key that is not in `keys`, unless it is a setting of a part whose name
    is in `keys`, or is set by the cases of a sweep: it is the same in all runs of a case.

    If `keys` has `name`, runs may differ in any key, because the names tell the cases of a sweep apart.
    """
    if "name" in keys:
        return
    blocks = tuple(key.removesuffix("name") for key in keys if key.endswith(".name"))
    of_cases = members(runs, ["name"]).values() if all(run.info.get("sweep") for run in runs.runs) else ()
    within = {key for case in of_cases for key in beyond(case, keys)} if len(of_cases) > 1 else {*beyond(runs, keys)}
    if other := [key for key in beyond(runs, keys) if key in within and not key.startswith(blocks)]:
        raise NotComparable(
            f"runs that cannot be paired: they must differ in their seed and {', '.join(keys) or 'nothing'} only, got "
            f"several values of {', '.join(other)}; add {' '.join(f'--by {key}' for key in other)}"
        )


def _chosen(keys: list[str], groups: list[Values], baseline: Sequence[str]) -> dict[str, str]:
    """Returns the keys that tell the baseline from other cases, with its values as text.

    baseline: values such as fedavg, or keys, whole or as tables name them, with values such as algorithm=fedavg; by
    default the first algorithm or, if that is the same everywhere, the first value of the first key.
    """
    if not keys:
        raise NotComparable("by: must name what differs between the runs, got none; pairs need two cases")
    if not baseline:
        key = "algorithm.name" if "algorithm.name" in keys else keys[0]
        return {key: written(groups[0][keys.index(key)])}
    known = {key: {written(values[place]) for values in groups} for place, key in enumerate(keys)}
    found: dict[str, str] = {}
    short = short_names(keys)
    for text in baseline:
        fits = [
            (key, value)
            for key in keys
            for value in known[key]
            if text in (value, *(f"{name}={value}" for name in (key, key.removesuffix(".name"), short[key])))
        ]
        if not fits:
            cases = "; ".join(f"{key} of {', '.join(sorted(values))}" for key, values in known.items())
            raise NotComparable(f"baseline: must be a value of a key that differs, {cases}; got {text!r}")
        found.update(fits[:1])
    return found


def _cases(
    keys: list[str], groups: list[Values], chosen: dict[str, str], notes: list[str]
) -> list[tuple[Values, Values]]:
    """Returns each case with its baseline, and adds a note for each case that has none.

    If several groups have the values of the baseline, the baseline of a case is the group that has the case's values in
    all other keys. Settings of the chosen part are left out of account: FedAvg can be the baseline of FedBuff, though
    it has no buffer.
    """
    found = [values for values in groups if all(written(values[keys.index(k)]) == v for k, v in chosen.items())]
    blocks = tuple(key.removesuffix("name") if key.endswith(".name") else key for key in chosen)
    others = [place for place, key in enumerate(keys) if not key.startswith(blocks)] if len(found) > 1 else []
    baselines: dict[Values, Values] = {}
    for values in found:
        rest = tuple(values[place] for place in others)
        if rest in baselines:
            both = f"{_as_text(keys, baselines[rest])} and {_as_text(keys, values)}"
            raise NotComparable(f"baseline: must be one case, got {both}; add --baseline KEY=VALUE")
        baselines[rest] = values
    cases = []
    for values in groups:
        rest = tuple(values[place] for place in others)
        if rest not in baselines:
            notes.append(f"{_as_text(keys, values)}: left out, because no baseline has the same other keys")
        elif values not in found:
            cases.append((values, baselines[rest]))
    if not cases:
        named = ", ".join(f"{key}={value}" for key, value in chosen.items())
        text = f"runs: must hold a case other than the baseline {named}, got none; give more runs, or another baseline"
        raise NotComparable("\n".join([*dict.fromkeys(notes), text]))
    return cases


def _as_text(keys: list[str], values: Values) -> str:
    return ", ".join(f"{key}={written(value)}" for key, value in zip(keys, values, strict=True) if value is not None)


def _pairs(case: list[Run], baseline: list[Run], notes: list[str]) -> list[tuple[Run, Run]]:
    """Returns the runs of the same seed, and adds a note for each run without a partner."""
    of_case, of_baseline = ({_seed(run): run for run in group} for group in (case, baseline))
    for mine, theirs, whose in ((of_case, of_baseline, "the baseline"), (of_baseline, of_case, "a case")):
        for seed in sorted(mine.keys() - theirs.keys(), key=str):
            notes.append(f"{mine[seed].folder}: left out of a pair, because {whose} has no run with seed {seed}")
    return [(of_case[seed], of_baseline[seed]) for seed in of_case if seed in of_baseline]


def _seed(run: Run) -> str:
    return str((run.info.get("scenario") or {}).get("seed"))


def _found(
    case: str, metric: str, pairs: Sequence[tuple[Run, Run]], numbers: Mapping[str, float], notes: list[str]
) -> tuple[list[float], list[float]]:
    """Returns the numbers of both sides. Pairs in which one run has no number are left out, with a note. case: what the
    note begins with."""
    found, lacking, censored = [], [], []
    for pair in pairs:
        if lacks := [run for run in pair if run.id not in numbers]:
            lacking.append(lacks[0])
        elif above := [run for run in pair if isinstance(numbers.get(run.id), Censored)]:
            censored.append(above[0])
        else:
            found.append([numbers[run.id] for run in pair])
    for runs, why in ((lacking, f"it has no {metric}"), (censored, f"its {metric} is not reached")):
        if runs:
            left = f"{len(runs)} of {count(len(pairs), 'pair')} left out, such as that of {runs[0].folder}"
            notes.append(f"{case}{left}, because {why}")
    if len(found) < 2:
        notes.append(f"{metric}: needs two pairs for intervals, got {len(found)}; run more seeds of both")
    return [case for case, _ in found], [baseline for _, baseline in found]
