"""The steps from nothing to a model that answers, and the watch that follows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from penstock.adapters.adapter import AdapterRef
from penstock.control import log_files
from penstock.control.admin.adapters.alias_models import AliasModel
from penstock.control.admin.adapters.models import AdapterModel
from penstock.control.admin.rollout.models import (
    DeploymentModel,
    GatewayModel,
    NodeModel,
    ReplicaModel,
    RolloutModel,
    SpecModel,
)
from penstock.control.admin.version_models import VersionModel
from penstock.control.errors import (
    CannotStart,
    InvalidInput,
    NotFound,
    Unauthenticated,
    Unavailable,
)
from penstock.control.serving import panel
from penstock.control.serving.children import Child
from penstock.control.serving.options import LABELS, Adapter, ServeOptions
from penstock.control.serving.progress import failure, loading_phase, newest_step
from penstock.control.serving.spec_changes import differences, served, serving_as
from penstock.control.serving.watching import Watch
from penstock.control.state.rollout.revision import RevisionState
from penstock.control.state.rollout.trial import Question, proof_for

# Each look costs this process and the head some milliseconds, and what loads wants the cores.
POLL_EVERY = timedelta(milliseconds=100)
POLL_SHARE = 0.02  # of the time that it has taken so far, where that is longer
WATCH_EVERY = timedelta(seconds=2)
PROCESS_DEADLINE = timedelta(seconds=30)
ANSWER_DEADLINE = timedelta(seconds=60)
# From here on the log of the loading replica is shown beside the progress.
LONG = timedelta(seconds=3)
TAIL = 50  # lines of that log


class Admin(Protocol):
    """The admin API. Every call raises `Unavailable`, `InvalidInput` or `Unauthenticated`."""

    async def version(self) -> VersionModel:
        """Whether the head is in command."""

    async def deployments(self) -> list[DeploymentModel]:
        """Every deployment."""

    async def replicas(self) -> list[ReplicaModel]:
        """Every replica."""

    async def nodes(self) -> list[NodeModel]:
        """Every node."""

    async def gateways(self) -> list[GatewayModel]:
        """Every gateway."""

    async def deployment(self, name: str) -> DeploymentModel | None:
        """One deployment; None where there is none of this name."""

    async def put_deployment(
        self, name: str, spec: SpecModel, *, over: DeploymentModel | None
    ) -> DeploymentModel:
        """Makes a deployment, or `over` this one, as the spec says."""

    async def delete_deployment(self, name: str) -> None:
        """Deletes one."""

    async def register_adapter(
        self, name: str, version: str, base: str, source: str, labels: Mapping[str, str]
    ) -> tuple[AdapterModel, bool]:
        """Registers an adapter version, unless it is there with the same bytes."""

    async def aliases(self, deployment: str | None = None) -> list[AliasModel]:
        """The aliases of a deployment."""

    async def put_alias(self, deployment: str, alias: str, spec: Mapping[str, Any]) -> AliasModel:
        """Moves an alias, or makes it."""


class Gateway(Protocol):
    """The OpenAI API, asked without a key.

    Every call raises `Unavailable`, all but `ready` also `Unauthenticated`.
    """

    async def models(self) -> list[str]:
        """Names that clients may say."""

    async def ready(self) -> bool:
        """Whether it has a replica that can be sent requests."""

    async def ask(self, question: Question) -> None:
        """An answer, computed for real."""


class Shown(Protocol):
    """Where progress goes."""

    def done(self, text: str) -> None:
        """A step is behind us."""

    def progress(self, what: str, *, seconds: float, detail: str = "") -> None:
        """What is being waited for."""

    def event(self, text: str) -> None:
        """Something happened."""

    def text(self, text: str) -> None:
        """Lines as they are."""


class Session:
    """One run of `penstock serve`, its processes aside."""

    def __init__(
        self,
        options: ServeOptions,
        admin: Admin,
        gateway: Gateway,
        shown: Shown,
        head: Child,
        node: Child,
    ) -> None:
        self._options = options
        self._admin = admin
        self._gateway = gateway
        self._shown = shown
        self._head = head
        self._node = node
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._began_at = datetime.now(UTC)
        self._asks_for_keys = False
        self._rollout: RolloutModel | None = None  # of what was asked for

    async def run(self) -> None:
        """Brings everything up, says so, and watches until cancelled. Raises `CannotStart`."""
        self._head.begin()
        await self._until(self._head_answers, "starting head and gateway", PROCESS_DEADLINE)
        if self._options.take_over:
            self._node.begin()  # the head hears it before it takes over
        await self._deploy()  # before there is a node that would start what was served last time
        self._node.begin()  # it needs no gateway: the two start beside each other
        await self._prove()
        await self._load()
        await self._answer()
        text = panel.ready_text(
            self._options,
            seconds=self._loop.time() - self._began,
            asks_for_keys=self._asks_for_keys,
        )
        self._shown.text(f"\n{text}\n")
        await self._watch()

    # ---- steps

    async def _prove(self) -> None:
        await self._until(self._gateway_works, "starting head and gateway", PROCESS_DEADLINE)
        self._head.proven()
        await self._until(self._node_registered, "starting the node agent", PROCESS_DEADLINE)
        self._node.proven()
        self._shown.done("head, gateway and node agent run")

    async def _deploy(self) -> None:
        name = self._options.name

        async def put() -> bool:
            known = await self._admin.deployment(name)
            spec = served(self._options, known.spec if known else None)
            made = await self._admin.put_deployment(name, spec, over=known)
            self._rollout = made.status.rollout
            if known:
                self._tell_changes(known.spec, spec)
            self._options = serving_as(self._options, spec)
            for adapter in self._options.adapters:
                await self._offer_or_leave_out(adapter)
            return True

        try:
            await self._until(put, f"asking for {name}", PROCESS_DEADLINE)
        except (InvalidInput, NotFound, Unauthenticated) as error:
            raise CannotStart(str(error)) from error
        await self._until(self._alone, "removing what was served last time", PROCESS_DEADLINE)

    def _tell_changes(self, stored: SpecModel, spec: SpecModel) -> None:
        """What this command changes of what was stored, and what it leaves as it was changed."""
        name = self._options.name
        if changes := ", ".join(differences(stored, spec)):
            self._shown.event(f"{name} is changed as it is said here: {changes}")
        if kept := ", ".join(differences(served(self._options, None), spec)):
            self._shown.event(f"{name} stays as it was left, apart from the defaults: {kept}")

    async def _offer_or_leave_out(self, adapter: Adapter) -> None:
        """One that only comes along may have been removed or retired: then that stands."""
        try:
            await self._offer(adapter)
        except (InvalidInput, NotFound) as error:
            if not adapter.comes_along:
                raise
            self._shown.event(f"{self._options.name}:{adapter.alias} is left out: {error}")
            left = tuple(each for each in self._options.adapters if each != adapter)
            self._options = replace(self._options, adapters=left)

    async def _offer(self, adapter: Adapter) -> None:
        """Registers an adapter and has its alias name it."""
        options, ref = self._options, AdapterRef.parse(adapter.name)
        await self._admin.register_adapter(ref.name, ref.version, options.name, adapter.source, {})
        known = {each.alias: each.target for each in await self._admin.aliases(options.name)}
        if adapter.alias not in known or not adapter.comes_along:
            await self._admin.put_alias(options.name, adapter.alias, {"target": adapter.name})
            if (was := known.get(adapter.alias, adapter.name)) != adapter.name:
                self._shown.event(f"{options.name}:{adapter.alias} {was} -> {adapter.name}")

    async def _load(self) -> None:
        began = self._loop.time()
        while not await self._all_ready():
            replicas = await self._replicas()
            if lost := failure(replicas, self._began_at):
                raise CannotStart(
                    f"{self._options.model} cannot be served: {lost.last_error}\n"
                    f"  the whole story: {lost.log_path}"
                )
            seconds = self._loop.time() - began
            detail = self._newest_step(replicas) if seconds > LONG.total_seconds() else ""
            self._shown.progress(
                f"{self._options.name}: {loading_phase(replicas)}", seconds=seconds, detail=detail
            )
            await asyncio.sleep(_pause(seconds))
        count = self._options.replicas
        self._shown.done(
            f"{self._options.name} is loaded"
            + (f" by {count} replicas" if count > 1 else "")
            + f" ({self._loop.time() - began:.0f} s)"
        )

    async def _answer(self) -> None:
        await self._until(self._listed, "waiting for the gateway", ANSWER_DEADLINE)
        # A simulated engine may have been told to die of its first token, a provider's costs money.
        if self._options.engine == "vllm" and not self._asks_for_keys:
            await self._until(self._answers, "asking for a first answer", ANSWER_DEADLINE)

    async def _watch(self) -> None:
        watch = Watch(self._admin, self._shown.event)
        while True:
            await watch.look()
            await asyncio.sleep(WATCH_EVERY.total_seconds())

    # ---- conditions

    async def _head_answers(self) -> bool:
        await self._admin.gateways()
        await self._check_command()
        return self._head.pid != 0

    async def _check_command(self) -> None:
        """Raises `CannotStart` where the head holds still, for nothing would come of any order."""
        held = (await self._admin.version()).held
        if held and not self._options.take_over:
            raise CannotStart(f"the head holds still: {held}")

    async def _gateway_works(self) -> bool:
        """A head that answers may still find that its gateway cannot run, and end."""
        gateways = await self._admin.gateways()
        return self._head.pid != 0 and any(each.state == "ready" for each in gateways)

    async def _alone(self) -> bool:
        """Removes what an earlier `penstock serve` deployed."""
        for deployment in await self._admin.deployments():
            if (
                deployment.spec.labels.items() >= LABELS.items()
                and deployment.name not in self._options.deployments
            ):
                await self._admin.delete_deployment(deployment.name)
                self._shown.done(f"{deployment.name}, served last time, is removed")
        return True

    async def _node_registered(self) -> bool:
        await self._check_command()
        return any(
            node.id == self._options.node_id and node.pid == self._node.pid
            for node in await self._admin.nodes()
        )

    async def _all_ready(self) -> bool:
        try:
            deployments = await self._admin.deployments()
        except Unavailable:  # the head is being started again
            return False
        mine = [each for each in deployments if each.name == self._options.name]
        if not mine:
            return False
        self._check_rollout(mine[0].status.rollout)
        return mine[0].status.phase == "ready"

    def _check_rollout(self, now: RolloutModel | None) -> None:
        """Raises `CannotStart` where what was asked for is not served, but what was before it."""
        asked = self._rollout
        if now is None or asked is None:
            return
        failed = now.revision == asked.revision and now.state is RevisionState.FAILED
        if failed or now.undoes == asked.revision:
            raise CannotStart(f"{self._options.model} cannot be served: {now.cause}")

    async def _listed(self) -> bool:
        try:
            return set(self._options.model_names) <= set(await self._gateway.models())
        except Unauthenticated:
            return await self._ready_for_keys()

    async def _answers(self) -> bool:
        served = {path for each in await self._replicas() for path in each.endpoints}
        question = proof_for(self._options.name, served)
        try:
            if question is not None:
                await self._gateway.ask(question)
        except Unauthenticated:
            return await self._ready_for_keys()
        return True

    async def _ready_for_keys(self) -> bool:
        """The keys are the tenants': what they would see, nobody can be asked without one."""
        self._asks_for_keys = True
        return await self._gateway.ready()

    # ---- tools

    async def _until(
        self, condition: Callable[[], Awaitable[bool]], what: str, limit: timedelta
    ) -> None:
        """Polls a condition, which may raise `Unavailable`. Raises `CannotStart` at the limit."""
        began = self._loop.time()
        reason = ""
        while (seconds := self._loop.time() - began) < limit.total_seconds():
            try:
                if await condition():
                    return
            except Unavailable as error:
                reason = f": {error}"
            self._shown.progress(what, seconds=seconds)
            await asyncio.sleep(_pause(seconds))
        logs = self._options.data_dir / "logs"
        raise CannotStart(f"{what} took over {limit.total_seconds():.0f} s{reason}; see {logs}")

    async def _replicas(self) -> list[ReplicaModel]:
        try:
            replicas = await self._admin.replicas()
        except Unavailable:
            return []
        gone = ("draining", "asleep", "stopped", "lost")
        name = self._options.name
        return [each for each in replicas if each.deployment == name and each.state not in gone]

    def _newest_step(self, replicas: list[ReplicaModel]) -> str:
        loading = [each for each in replicas if each.log_path and each.state != "ready"]
        return newest_step(log_files.tail(Path(loading[0].log_path), TAIL)) if loading else ""


def _pause(seconds: float) -> float:
    """Before the next look at what has taken so long."""
    return max(POLL_EVERY.total_seconds(), POLL_SHARE * seconds)
