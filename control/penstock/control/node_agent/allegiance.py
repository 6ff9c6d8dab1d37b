"""Whose orders a node agent takes: of the newest head that it has heard, and of none before it.

A head with another store, a restored backup or an old copy of the store does not know what runs
here. It may ask for nothing until `penstock head --take-over` has raised its epoch.

Orders and heartbeats' answers of one head are under way together, and overtake each other. So what
is compared is the newest stamp that was accepted before any that may still be under way. A head
whose store is behind by less than that is told the newest of all when this agent registers there,
and holds still (`command.heard_stamp`).
"""

from __future__ import annotations

import json
import logging
import os
from collections import deque
from collections.abc import Callable
from pathlib import Path

from penstock.control.errors import ForeignHead
from penstock.control.state.stamp import START_ONCE, Stamp
from penstock.v1 import common_pb2

log = logging.getLogger(__name__)

UNDER_WAY = 30.0  # seconds, after which a head has given up an order that has not come


def refusal(accepted: Stamp, offered: Stamp, settled: Stamp | None = None) -> str:
    """Why an order with the stamp `offered` is not taken; empty: it is. `settled`: the newest that
    was accepted before any that may still be under way; None: nothing is."""
    if not accepted:
        return ""
    if not offered:
        return "it does not say which cluster it is of"
    if offered.cluster_id != accepted.cluster_id:
        return "it is of another cluster"
    if offered.epoch < accepted.epoch:
        return "another head took over since"
    at_least = accepted if settled is None else settled
    if offered.epoch == at_least.epoch and offered.revision < at_least.revision:
        return "its store is older than what was heard of it before"
    return ""


class Allegiance:
    """The newest stamp that this agent has accepted, kept in a file of its data directory. `now`:
    seconds that only grow."""

    def __init__(self, path: Path, now: Callable[[], float]) -> None:
        self._path = path
        self._now = now
        self._accepted = _read(path)
        self._settled = self._accepted  # the newest that nothing older can still follow
        self._recent: deque[tuple[float, Stamp]] = deque()  # accepted since, and when
        self._told = ""  # the last refusal that was logged

    @property
    def stamp(self) -> Stamp:
        """What the agent tells heads of itself; empty until it has accepted one."""
        return self._accepted

    @property
    def message(self) -> common_pb2.ClusterStamp:
        """The same for the wire."""
        stamp = self._accepted
        return common_pb2.ClusterStamp(
            cluster_id=stamp.cluster_id, epoch=stamp.epoch, revision=stamp.revision
        )

    def trouble(self) -> str:
        """Why this agent would not know any more whose it is if it began again; empty: it would."""
        if not self._accepted or self._path.exists():
            return ""
        return (
            f"{self._path} is gone, so that this node would obey any head: see whether the disk of"
            " its data directory is mounted"
        )

    def accept(self, offered: Stamp) -> None:
        """Takes an order's stamp. Raises `ForeignHead`, and the order is to be refused."""
        self._settle()
        if why := refusal(self._accepted, offered, self._settled):
            raise ForeignHead(
                f"this order is refused, {why}: it comes from {offered or 'nobody'}, this node"
                f" belongs to {self._accepted}; if that head is to own this node from now on,"
                f" {START_ONCE}"
            )
        if _order(offered) > _order(self._accepted):
            self._accepted = offered
            self._recent.append((self._now(), offered))
            self._save()

    def _settle(self) -> None:
        while self._recent and self._recent[0][0] <= self._now() - UNDER_WAY:
            self._settled = self._recent.popleft()[1]

    def learn(self, message: common_pb2.ClusterStamp) -> bool:
        """Takes a reply's stamp, where it may: a foreign head's changes nothing. Whether it is of
        this node's head."""
        observed = Stamp(message.cluster_id, message.epoch, message.revision)
        try:
            if observed:
                self.accept(observed)
        except ForeignHead as error:
            if str(error) != self._told:
                self._told = str(error)
                log.error("the head that answers is not this node's: %s", error)
            return False
        return True

    def _save(self) -> None:
        draft = self._path.with_suffix(".tmp")
        stamp = self._accepted
        words = {
            "cluster_id": stamp.cluster_id,
            "epoch": stamp.epoch,
            "revision": stamp.revision,
        }
        try:
            draft.write_text(json.dumps(words) + "\n")
            os.replace(draft, self._path)
        except OSError as error:  # a full disk is no reason to refuse orders
            log.error("cannot remember whose orders were taken: %s", error)


def _order(stamp: Stamp) -> tuple[int, int]:
    return stamp.epoch, stamp.revision


def _read(path: Path) -> Stamp:
    try:
        words = json.loads(path.read_text())
        return Stamp(str(words["cluster_id"]), int(words["epoch"]), int(words["revision"]))
    except FileNotFoundError:
        return Stamp()
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.error("cannot read %s, any head is taken: %s", path, error)
        return Stamp()
