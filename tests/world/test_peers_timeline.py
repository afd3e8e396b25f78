"""Who hears whom when: timelines of peers, without models."""

from collections import Counter

import pytest

from raysim.world import World
from raysim.world.clock import Horizon
from raysim.world.gossip_timeline import GossipTimeline
from raysim.world.mixing import NeighbourMean
from raysim.world.network import Mail, Sent
from raysim.world.peers_happening import Mixed
from raysim.world.random_topology import Regular
from raysim.world.rounds_timeline import RoundsTimeline
from raysim.world.topology import Line, Ring

# --- rounds -----------------------------------------------------------------------------------------------------------


def test_in_seconds_a_round_ends_with_its_last_message() -> None:
    """Trainings take 1 and 3 s, then 2 and 1 s; messages half a second."""
    delay = {"name": "scripted", "unit": "seconds", "delays": ((1.0, 2.0), (3.0, 1.0))}
    world = World.model_validate({"delay": delay, "edge_delay": {"name": "constant", "value": 0.5}})
    rounds = list(RoundsTimeline(world, Line(), 2, Horizon(2, every_rounds=1), seed=0))
    assert [exchanged.time for exchanged in rounds] == [3.5, 6.0]
    assert [[mixed.trained for mixed in exchanged.mixed] for exchanged in rounds] == [[1.0, 3.0], [5.5, 4.5]]
    assert all(heard.age == 0 for exchanged in rounds for mixed in exchanged.mixed for heard in mixed.inbox)


# --- gossip -----------------------------------------------------------------------------------------------------------


def heard(mixed: Mixed) -> list[tuple[int, int, float]]:
    return [(message.peer, message.number, message.age) for message in mixed.inbox]


def test_gossip_on_a_line_by_hand() -> None:
    """Peers 0 - 1 - 2 train for 1, 2 and 3 s, messages take 0.5 s: six mixes, at 1, 2, 2, 3, 3 and 4 s.

    At 4 s both 0 and 1 are there, but the run is over after the mix of 0.
    """
    delay = {"name": "scripted", "unit": "seconds", "delays": ((1.0,) * 5, (2.0,) * 4, (3.0,) * 3)}
    world = World.model_validate(
        {"synchronous": False, "delay": delay, "edge_delay": {"name": "constant", "value": 0.5}}
    )
    timeline = GossipTimeline(world, Line(weights=NeighbourMean(beta=0.5)), 3, Horizon(2, every_rounds=1), seed=0)
    first, last = rounds = list(timeline)
    assert [exchanged.time for exchanged in rounds] == [2.0, 4.0]
    assert [(m.time, m.peer, m.number, m.began, heard(m)) for m in first.mixed] == [
        (1.0, 0, 0, 0.0, []),
        (2.0, 0, 1, 1.0, []),  # peer 1 sends now, and its message arrives at 2.5
        (2.0, 1, 0, 0.0, [(0, 0, 1.0)]),
    ]
    assert [(m.time, m.peer, m.number, m.began, heard(m)) for m in last.mixed] == [
        (3.0, 0, 2, 2.0, [(1, 0, 1.0)]),
        (3.0, 2, 0, 0.0, [(1, 0, 1.0)]),
        (4.0, 0, 3, 3.0, [(1, 0, 2.0)]),  # still the newest that has arrived
    ]
    assert last.mixed[0].inbox[0].weight == 0.5 and first.mixed[2].inbox[0].weight == 0.25
    assert [(m.next.trains, m.next.kept) for m in (*first.mixed, *last.mixed)] == [
        (True, False),
        (True, True),
        (False, True),  # evaluated after both rounds
        (True, False),
        (False, True),
        (False, True),
    ]
    assert timeline.start == ((True, False), (True, False), (True, True))  # 2 has not mixed after the first round


def test_a_message_that_is_overtaken_is_not_mixed() -> None:
    mail = Mail()
    mail.put(
        [Sent(0, 1, number, sent, arrives) for number, sent, arrives in ((0, 1.0, 5.0), (1, 2.0, 3.0), (2, 3.0, None))]
    )
    assert mail.newest(0, 1, 2.0) is None
    assert mail.newest(0, 1, 3.0) == mail.newest(0, 1, 9.0) == Sent(0, 1, 1, 2.0, 3.0)
    assert mail.held == {(0, 1)}


# --- what is wrong ----------------------------------------------------------------------------------------------------


def test_gossip_without_durations_is_an_error() -> None:
    world = World.model_validate(
        {"synchronous": False, "delay": {"name": "scripted", "unit": "seconds", "delays": ((0.0,),) * 3}}
    )
    with pytest.raises(ValueError, match=r"must be longer than 0 seconds for peers that do not wait, got 0\.0 for"):
        GossipTimeline(world, Ring(), 3, Horizon(1, every_rounds=1), seed=0)


def test_a_thousand_peers_have_a_timeline_in_a_moment() -> None:
    """Every message of a round is heard once, by everybody's neighbours."""
    world = World.model_validate({})
    (exchanged,) = list(RoundsTimeline(world, Regular(degree=4), 1000, Horizon(1, every_rounds=1), seed=0))
    sent = {(message.source, message.target) for mixed in exchanged.mixed for message in mixed.sent}
    assert sent == {(message.peer, mixed.peer) for mixed in exchanged.mixed for message in mixed.inbox}
    assert len(sent) == 4000


def test_messages_that_are_consumed_are_heard_once_each_in_order_of_sending() -> None:
    delay = {"name": "log_normal", "median": 1.0, "sigma": 0.5, "unit": "seconds"}
    edge_delay = {"name": "exponential", "mean": 2.0}
    world = World.model_validate({"synchronous": False, "delay": delay, "edge_delay": edge_delay, "loss": 0.2})
    rounds = list(GossipTimeline(world, Ring(), 5, Horizon(60, every_rounds=1), seed=0, consumes=True))
    mixes = [mix for exchanged in rounds for mix in exchanged.mixed]
    arrivals = {(s.source, s.number, s.target): s.arrives for mix in mixes for s in mix.sent if s.arrives is not None}
    heard = Counter((one.peer, one.number, mix.peer) for mix in mixes for one in mix.inbox)
    assert set(heard.values()) == {1} and heard.keys() <= arrivals.keys()
    assert max(len(mix.inbox) for mix in mixes) > 2
    last = {mix.peer: mix.time for mix in mixes}
    assert all(arrivals[key] > last[key[2]] for key in arrivals.keys() - heard.keys())
    for mix in mixes:
        assert all(arrivals[one.peer, one.number, mix.peer] <= mix.time for one in mix.inbox)
        ages = [one.age for one in mix.inbox]
        assert ages == sorted(ages, reverse=True)
