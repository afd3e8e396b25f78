"""What is allowed, and yet makes no sense, is told before a run, or with its end."""

from pathlib import Path

from command_line import command
from conftest import digits

import raysim


def test_a_divergence_is_shown_with_a_cure(tmp_path: Path) -> None:
    diverged = raysim.run(digits(local__lr=1e30), out=tmp_path / "diverged", inline=True)
    told = " ".join(command("show", diverged.folder).stdout.split())
    assert (
        "mostly helps a smaller local.lr or algorithm.server_lr, a warm-up, or clip_norm among local.gradients" in told
    )
