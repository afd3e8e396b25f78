"""`raysim partition`: who holds which data, before any run."""

from pathlib import Path

from command_line import command, write
from conftest import digits


def test_sizes_and_labels_are_told_and_drawn(tmp_path: Path) -> None:
    partition = {"name": "classes", "per_client": 2, "sizes": {"name": "power_law", "exponent": 1.0}}
    raw = digits(data__clients=10, data__partition=partition, data__local_test=0.2)
    path = write(tmp_path, raw, "long" * 20)  # longer than a line of the terminal
    page = tmp_path / "page.html"
    answer = command("partition", path, "-o", page)
    assert answer.exit_code == 0, answer.output
    lines = answer.stdout.splitlines()
    assert lines[0] == str(path)
    assert lines[1].startswith("10 clients hold 1155 training samples, from ")
    assert lines[2] == "labels of a client: from 2 to 2 of 10, mean 2"
    assert [line.split()[0] for line in lines[-11:-1]] == [str(client) for client in range(10)]
    assert lines[-1] == f"3 figures in {page}"
    text = page.read_text()
    assert "Clients by labels" in text
    assert "Samples per client" in text


def test_what_cannot_be_divided_is_told_at_its_key(tmp_path: Path) -> None:
    path = write(tmp_path, digits(data__partition={"name": "natural", "by": "user"}))
    answer = command("partition", path)
    assert answer.exit_code == 2
    assert answer.stderr.startswith(f"{path}: data.partition: no column 'user'; this data set has ['label']")
    path = write(tmp_path, digits(sed=1))
    assert command("partition", path).exit_code == 2
    path = write(tmp_path, digits())
    for folder in (tmp_path / "no", path):
        assert command("partition", path, "-o", folder / "page.html").exit_code == 2
