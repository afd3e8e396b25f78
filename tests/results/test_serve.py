"""The live page over a folder of runs: what it lists, what it compares, and whom it answers."""

import asyncio
import json
import re
import shutil
import socket
from pathlib import Path
from typing import NamedTuple

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from command_line import command
from compared_runs import made, several
from reported_runs import made as made_by_rows
from test_watch import HERE, rows

from results import load
from results.load import Folder
from results.report import report
from results.report.sections import CURVES
from results.serve import application


class Answer(NamedTuple):
    status: int
    text: str
    headers: dict[str, str]


def asked(folder: Path, *addresses: str, method: str = "GET", **headers: str) -> list[Answer]:
    """What one reader gets, whose browser follows no redirect by itself and keeps cookies."""

    async def ask() -> list[Answer]:
        from aiohttp import CookieJar

        server = TestServer(application(folder))
        async with TestClient(server, cookie_jar=CookieJar(unsafe=True)) as client:
            found = []
            for address in addresses:
                answer = await client.request(method, address, headers=headers, allow_redirects=False)
                found.append(Answer(answer.status, await answer.text(), dict(answer.headers)))
            return found

    return asyncio.run(ask())


def page(folder: Path, address: str) -> str:
    (answer,) = asked(folder, address)
    assert answer.status == 200, answer.text
    return answer.text


def listed(html: str) -> list[list[str]]:
    """The cells of each row of the list, without spaces."""
    table = re.search(r"<table.*?</table>", html, re.DOTALL)
    assert table
    found = [
        re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL) for row in re.findall(r"<tr.*?</tr>", table[0], re.DOTALL)
    ]
    return [[" ".join(re.sub("<.*?>", " ", cell).split()) for cell in row] for row in found]


def column(html: str, name: str) -> list[str]:
    heads, *lines = listed(html)
    return [line[heads.index(name)] for line in lines]


def test_the_list_shows_in_which_keys_runs_differ_and_how_good_they_are(tmp_path: Path) -> None:
    _, first, *others = listed(page(several(tmp_path), "/"))
    more = "more virtual time 4.5, real time 8.0 s, 0.0012 MB sent"
    assert first == ["", "accuracy 0.5", "0", "finished", "4", "fedavg, sigma=20", "fedavg-20-0", more]
    assert len(others) == 5


def test_sweeps_come_first_with_the_headline_of_their_report(tmp_path: Path) -> None:
    """And all single runs follow, also those whose names come after a sweep's."""
    several(tmp_path / "study")
    for name in ("before", "single", "with-a-later-name"):
        made(tmp_path / name, {}, [0.5])
    html = page(tmp_path, "/")
    assert html.index('id="sweep-study"') < html.index("best mean of its column") < html.index("<summary>6 runs")
    assert html.index("<summary>6 runs") < html.index("Single runs")
    assert "9 runs." in html and html.count('type="checkbox"') == 9


def test_damaged_runs_runs_under_way_and_runs_without_a_round_are_listed(tmp_path: Path) -> None:
    made(tmp_path / "good", {"run": {"rounds": 4}}, [0.5, 0.75])
    shutil.copytree(tmp_path / "good", tmp_path / "other")
    made_by_rows(tmp_path / "going", rows(0.1, 0.2, 0.8), {"run": {"rounds": 9}}, **HERE)
    made_by_rows(tmp_path / "none", {}, status="failed", error="client 3: no data <b>\nTraceback")
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "run.json").write_text('{"run": ')
    made(tmp_path / "cut", {}, [0.5])
    (file,) = (tmp_path / "cut" / "evaluations").iterdir()
    file.write_bytes(file.read_bytes()[:50])
    html = page(tmp_path, "/")
    remarks = (line[-1].partition("more")[0].strip() for line in listed(html)[1:])
    both = (" ".join(pair).strip() for pair in zip(column(html, "status"), remarks, strict=True))
    states = dict(zip(column(html, "run"), both, strict=True))
    assert states["good"] == "finished"
    assert states["other"] == "copy holds the run good, which good holds too"
    assert states["going"].startswith("running waits for round 4, ")
    assert states["none"] == "failed client 3: no data &lt;b&gt;"
    assert states["torn"].startswith(f"damaged {tmp_path}/torn/run.json: must be JSON")
    assert states["cut"].startswith(f"damaged {file}: must be a whole Parquet file")
    assert column(html, "rounds") == ["", "3/9", "4/4", "0", "", ""]
    assert f"cut: {file}: must be a whole Parquet file" in page(tmp_path, "/runs?run=none&run=cut")
    page(tmp_path, "/report?run=none")


def test_chosen_runs_have_the_figures_of_the_report_and_those_that_go_on_are_followed(tmp_path: Path) -> None:
    for seed in (0, 1):
        made(tmp_path / f"s-{seed}", {"seed": seed}, [0.5, 0.7 + seed / 10])
    made(tmp_path / "other", {"seed": 2}, [0.1])
    chosen = page(tmp_path, "/runs?run=s-0&run=s-1")
    figures = report(load(tmp_path / "s-0", tmp_path / "s-1"), sections=[CURVES]).pictures
    axes = ("round", "virtual-time", "bytes", "up-bytes", "down-bytes")
    assert [one.name for one in figures] == [f"curves-accuracy-test-{x}" for x in axes]
    assert all(one.uri.replace("'", "&#39;") in chosen for one in figures)
    assert "Band: " in chosen and "data-live" not in chosen
    made_by_rows(tmp_path / "going", rows(0.1, 0.2, 0.8), {"run": {"rounds": 9}}, **HERE)
    going = page(tmp_path, "/runs?run=going")
    assert 'data-live="runs"' in going and 'value="3" max="9"' in going and "waits for round 4" in going


def test_an_empty_folder_has_a_page_and_what_it_lacks_is_not_found(tmp_path: Path) -> None:
    assert "0 runs." in page(tmp_path, "/")
    made(tmp_path / "in" / "r", {}, [0.5])
    outside = ("/runs?run=../in/r", f"/runs?run={tmp_path}/in/r", "/report?run=nothing", "/../in", "/run.json")
    assert [answer.status for answer in asked(tmp_path / "in", *outside)] == [404] * len(outside)
    assert asked(tmp_path / "in", "/", method="POST")[0].status == 405


def test_runs_that_are_over_are_read_once_until_they_change(tmp_path: Path) -> None:
    folder = made(tmp_path / "r", {}, [0.5])
    watched = Folder(tmp_path)
    (first,), (second,) = watched.look(), watched.look()
    assert second is first
    info = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**info, "notes": ["another"]}))
    assert watched.look()[0] is not first


def test_on_its_own_address_only_its_own_names_are_answered(tmp_path: Path) -> None:
    """Else a page of somebody else's, whose name is made to mean this machine, could have runs read for it."""
    assert [asked(tmp_path, "/", Host=name)[0].status for name in ("localhost:1", "127.0.0.1", "[::1]:80")] == [200] * 3
    assert asked(tmp_path, "/", Host="evil.example:8470")[0].status == 403
    assert [asked(tmp_path, "/", Host=name)[0].status for name in ("[::1", "127.0.0.1:a", "[x]")] == [400] * 3
    policy = asked(tmp_path, "/")[0].headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy


def test_the_command_says_where_it_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def served(app: web.Application, sock: socket.socket, **_: object) -> None:
        sock.close()

    monkeypatch.setattr(web, "run_app", served)
    assert re.fullmatch(
        rf"http://127\.0\.0\.1:\d+/ shows the runs in {tmp_path} until Ctrl-C\n",
        command("serve", tmp_path, "--port", 0).stdout,
    )
    with socket.create_server(("127.0.0.1", 0)) as other:
        answer = command("serve", tmp_path, "--port", other.getsockname()[1])
    assert answer.exit_code == 2 and "must be free to listen on" in answer.stderr
    answer = command("serve", tmp_path / "nothing")
    assert answer.exit_code == 2 and "must be a folder of runs" in answer.stderr
