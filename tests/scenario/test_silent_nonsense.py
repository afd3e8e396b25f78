"""What is allowed, and yet makes no sense, is told before a run, or with its end."""

from pathlib import Path

import pytest
from command_line import command
from conftest import Raw, digits

import raysim
from raysim.scenario.checks import notes_of

SECONDS = {"name": "exponential", "mean": 3.0, "unit": "seconds"}


@pytest.mark.parametrize(
    ("world", "algorithm", "told"),
    [
        ({"dispatch": {"per_round": 6}, "delay": SECONDS}, "fedbuff", True),
        ({"dispatch": {"per_round": 6, "round_s": 3.0}, "delay": SECONDS}, "fedbuff", False),
        ({"dispatch": {"per_round": 6, "reports": 3}, "delay": SECONDS}, "fedbuff", False),
        ({"dispatch": {"concurrency": 6}, "delay": SECONDS}, "fedbuff", False),
        ({"dispatch": {"per_round": 6}, "delay": SECONDS}, "fedavg", False),
        ({"dispatch": {"per_round": 6}}, "fedbuff", False),
    ],
)
def test_rounds_that_wait_for_all_leave_no_update_stale(world: Raw, algorithm: str, told: bool) -> None:
    notes = notes_of(raysim.parse_scenario(digits(world=world, algorithm=algorithm)))
    assert any("no update can ever be stale" in note for note in notes) == told


def test_a_divergence_is_shown_with_a_cure(tmp_path: Path) -> None:
    diverged = raysim.run(digits(local__lr=1e30), out=tmp_path / "diverged", inline=True)
    told = " ".join(command("show", diverged.folder).stdout.split())
    assert (
        "mostly helps a smaller local.lr or algorithm.server_lr, a warm-up, or clip_norm among local.gradients" in told
    )
