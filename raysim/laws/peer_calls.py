"""Calls all methods of an algorithm without a server, in the order in which a run calls them."""

from __future__ import annotations

from typing import Any

import torch

from raysim.algorithms import Inbox
from raysim.data import federate
from raysim.laws.calls import Calls
from raysim.laws.records import shapes
from raysim.laws.subject import Subject
from raysim.local.task import Task
from raysim.terms import Record
from raysim.workers.peers import PeersWorker

ROUNDS, PEERS = 3, 3  # rounds that are tried


class PeerCalls:
    """The calls of all methods in three rounds of three peers, the last of which hears of nobody."""

    def __init__(self, subject: Subject) -> None:
        scenario = subject.scenario
        federation = federate(scenario.data, scenario.server_data, scenario.seed, scenario.public)
        self._worker, self._algorithm = PeersWorker(scenario, federation, torch.device("cpu")), scenario.peer
        self.seen: list[tuple[str, int, int]] = []  # where; a peer's samples, and of how many it took gradients
        self.calls = Calls(self._algorithm)
        self.first = [self._init(peer) for peer in range(PEERS)]
        states = self.first
        for round in range(ROUNDS):
            states = self._round(round, states)
        self.calls(
            "personal", "peer 0", lambda state: self._algorithm.personal(self._task(0, ROUNDS), state), states[0]
        )

    def _task(self, peer: int, number: int) -> Task:
        return self._worker.task(peer, number, self._worker.start)

    def _personal(self, state: Record) -> Any:
        return self._algorithm.personal(self._task(0, ROUNDS), state)

    def _init(self, peer: int) -> Record:
        what = "the peer's first state"
        return self.calls.record("init", f"peer {peer}", what, lambda: self._algorithm.init(self._task(peer, 0)))

    def _round(self, round: int, states: list[Record]) -> list[Record]:
        drafts, messages = [], []
        for peer, state in enumerate(states):
            which, what = f"peer {peer}, after {round} mixes", ("the draft", "the message")

            def local(state: Record, peer: int = peer, which: str = which) -> Any:
                before, net = self._worker.net.seen, self._worker.net
                returned = self._algorithm.local(self._task(peer, round), state)
                samples = int(self._worker.federation.samples[peer])
                self.seen.append((self.calls.where("local", which), samples, net.seen - before))
                return returned

            draft, message = self.calls.pair("local", which, what, local, state)
            drafts.append(draft)
            messages.append(message)
        return [self._mixed(round, peer, states[peer], drafts[peer], messages) for peer in range(PEERS)]

    def _mixed(self, round: int, peer: int, state: Record, draft: Record, messages: list[Record]) -> Record:
        heard = [] if peer == PEERS - 1 else [messages[other] for other in range(PEERS) if other != peer]

        def mix(draft: Record, own: Record, *others: Record) -> Any:
            return self._algorithm.mix(self._task(peer, round), draft, Inbox(own, list(others), [0.25] * len(others)))

        which = f"peer {peer}, after {round} mixes"
        after = self.calls.record("mix", which, "the peer's next state", mix, draft, messages[peer], *heard)
        return after if shapes(after) == shapes(state) else state
