"""Who exchanges models with whom when: timelines of pairs of peers, without models."""

from collections import Counter

import pytest

from raysim.world import World
from raysim.world.clock import Horizon
from raysim.world.pairs_timeline import PairsTimeline
from raysim.world.random_topology import Regular
from raysim.world.topology import Line

SECONDS = {"name": "log_normal", "median": 1.0, "sigma": 0.5, "unit": "seconds"}


def test_exchanges_by_hand() -> None:
    """Peers 0 - 1 - 2 train for 1, 9 and 1.25 s, and messages take 0.5 s.

    At 1 s, peer 0 asks 1, and has the answer at 2 s. Peer 2 asks at 1.25 s, waits until 2 s, and has it at 3 s. Then
    peer 0, which asked again at 3 s, has it at 4 s, when the round is over.
    """
    delay = {"name": "scripted", "unit": "seconds", "delays": ((1.0,) * 5, (9.0,) * 3, (1.25,) * 4)}
    world = World.model_validate(
        {"synchronous": False, "delay": delay, "edge_delay": {"name": "constant", "value": 0.5}}
    )
    timeline = PairsTimeline(world, Line(), 3, Horizon(1, every_rounds=1), seed=0, sends_first=True)
    (exchanged,) = timeline
    assert exchanged.time == 4.0 and exchanged.ends == "rounds"
    assert [(mix.peer, mix.number, mix.began, mix.trained, mix.time) for mix in exchanged.mixed] == [
        (0, 0, 0.0, 1.0, 2.0),
        (2, 0, 0.0, 1.25, 3.0),
        (0, 1, 2.0, 3.0, 4.0),
    ]
    assert [mix.inbox for mix in exchanged.mixed] == [((1, number, 0.5, 1.0, 0.5),) for number in range(3)]
    assert [mix.answer for mix in exchanged.mixed] == [(1, 0, False), (1, 1, False), (1, 2, True)]
    assert [mix.next for mix in exchanged.mixed] == [(True, False), (False, True), (False, True)]
    sent = [(message.source, message.time, message.arrives) for message in exchanged.mixed[1].sent]
    assert sent == [(2, 2.0, 2.5), (1, 2.5, 3.0)]
    assert timeline.start == ((True, True), (False, True), (True, True))


@pytest.mark.parametrize("loss", [0.0, 0.3])
def test_no_peer_is_in_two_exchanges_and_none_waits_for_ever(loss: float) -> None:
    """A hundred peers on a graph with circles all go on, and each change of a model has its own number."""
    world = World.model_validate(
        {"synchronous": False, "delay": SECONDS, "edge_delay": {"name": "exponential", "mean": 1.0}, "loss": loss}
    )
    timeline = PairsTimeline(world, Regular(degree=3), 100, Horizon(50, every_rounds=1), seed=1)
    mixes = [mix for exchanged in timeline for mix in exchanged.mixed]
    assert min(Counter(mix.peer for mix in mixes).values()) > 10
    assert len({change for mix in mixes for change in mix.changed}) == sum(len(mix.changed) for mix in mixes)
    free = [0.0] * 100
    for mix in sorted((mix for mix in mixes if mix.answer), key=lambda mix: mix.sent[0].time):
        assert mix.answer
        for peer in (mix.peer, mix.answer.peer):
            assert free[peer] <= mix.sent[0].time
            free[peer] = mix.time
    lost = sum(mix.answer is None for mix in mixes) / len(mixes)
    assert lost == pytest.approx(1 - (1 - loss) ** 2, abs=0.03)
