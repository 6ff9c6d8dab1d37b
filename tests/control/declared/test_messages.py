"""Messages of values, and back, where names agree."""

from __future__ import annotations

import pytest

from penstock.control.declared.messages import members_of, message_of, numbers_of, value_of
from penstock.control.state.fleet.replica import Device, ReplicaState, Resources
from penstock.control.state.stamp import Stamp
from penstock.v1 import common_pb2, nodes_pb2


def test_a_value_with_the_names_of_a_message_goes_there_and_comes_back() -> None:
    stamp = Stamp("c", 2, 3)
    message = message_of(common_pb2.ClusterStamp, stamp)
    assert message == common_pb2.ClusterStamp(cluster_id="c", epoch=2, revision=3)
    assert value_of(Stamp, message) == stamp


def test_what_the_caller_gives_comes_first_then_the_first_value_that_has_it() -> None:
    one, other = Stamp("one", 1, 1), Resources(cpus=4)
    message = message_of(nodes_pb2.NodeResources, one, other, Resources(cpus=9, gpus=2), gpus=3)
    assert (message.cpus, message.gpus) == (4, 3)


def test_lists_of_a_message_become_tuples() -> None:
    message = nodes_pb2.NodeResources(cpus=1, devices=[nodes_pb2.Device(uuid="u")])
    devices = tuple(value_of(Device, each) for each in message.devices)
    assert value_of(Resources, message, devices=devices) == Resources(1, devices=(Device("u"),))


def test_members_have_the_numbers_of_their_names_and_each_has_one() -> None:
    kind, both = nodes_pb2.ReplicaPhase.DESCRIPTOR, (ReplicaState.READY, ReplicaState.ASLEEP)
    numbers = (nodes_pb2.REPLICA_PHASE_READY, nodes_pb2.REPLICA_PHASE_ASLEEP)
    assert numbers_of(kind, both) == dict(zip(both, numbers, strict=True))
    assert members_of(kind, both) == dict(zip(numbers, both, strict=True))
    with pytest.raises(KeyError, match="REPLICA_PHASE_LOST"):
        numbers_of(kind, [ReplicaState.LOST])
