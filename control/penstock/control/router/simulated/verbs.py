"""What engine calls do among simulated engines, for one request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from penstock.control.router.simulated.engines import Sequence, SimulatedEngine
from penstock.control.router.simulated.load import Arrival
from penstock.v1.router_pb2 import EngineCall, EngineReply, EngineVerb


class Verbs:
    """Makes the calls, as a gateway does, and counts what they move."""

    def __init__(self, engines: Mapping[str, SimulatedEngine], arrival: Arrival, key: str) -> None:
        self.key = key  # what prompts with the same beginning share
        self.calls: list[str] = []
        self.moved = 0  # tokens
        self._engines = engines
        self._arrival = arrival
        self._got: dict[str, int] = {}  # tokens of this very prompt, by engine
        self._leases: dict[tuple[str, str], int] = {}  # by engine and seq_id: their end

    def present(self, engine: SimulatedEngine) -> int:
        """Tokens of the prompt whose KV is there."""
        shared = engine.held(self.key, self._arrival.shared)
        return max(shared, self._got.get(engine.name, 0))

    async def reply(self, call: EngineCall) -> EngineReply:
        """What the gateway answers."""
        name = EngineVerb.Name(call.verb).removeprefix("ENGINE_VERB_").lower()
        self.calls.append(name)
        make: Callable[[EngineCall], Awaitable[EngineReply]] = getattr(self, f"_{name}")
        engine = self._engines.get(call.replica_id)
        if engine is None or (call.to_replica_id and call.to_replica_id not in self._engines):
            reply = EngineReply(error="unavailable", detail="no such engine")
        else:
            await asyncio.sleep(engine.machine.call)
            reply = await make(call)
        reply.ask_id, reply.call_id = call.ask_id, call.call_id
        return reply

    async def _tokenize(self, call: EngineCall) -> EngineReply:
        block = self._engines[call.replica_id].machine.block
        return EngineReply(length=self._arrival.prompt, block_size=block)

    async def _lookup(self, call: EngineCall) -> EngineReply:
        return EngineReply(matched_len=self.present(self._engines[call.replica_id]))

    async def _prep_recv(self, call: EngineCall) -> EngineReply:
        engine = self._engines[call.replica_id]
        end = min(call.end, self._arrival.prompt)
        end -= end % engine.machine.block
        self._leases[call.replica_id, call.seq_id] = end
        return EngineReply(matched_len=min(end, self.present(engine)), end=end)

    async def _remote_send(self, call: EngineCall) -> EngineReply:
        if (call.to_replica_id, call.seq_id) not in self._leases:
            return EngineReply(error="no_lease", detail=call.seq_id)
        end = min(call.end, self._leases[call.to_replica_id, call.seq_id])
        return await self._send(call, min(call.begin, end), end)

    async def _commit(self, call: EngineCall) -> EngineReply:
        return EngineReply(matched_len=self.present(self._engines[call.replica_id]))

    async def _release(self, call: EngineCall) -> EngineReply:
        self._leases.pop((call.replica_id, call.seq_id), None)
        return EngineReply()

    async def _migrate(self, call: EngineCall) -> EngineReply:
        there = self._engines[call.to_replica_id]
        end = min(call.end, self._arrival.prompt)
        end -= end % there.machine.block
        await asyncio.sleep(there.machine.call)
        return await self._send(call, min(end, self.present(there)), end)

    async def _send(self, call: EngineCall, begin: int, end: int) -> EngineReply:
        """Computes what is not here, then sends, as far as that did not go on beside it."""
        engine, there = self._engines[call.replica_id], self._engines[call.to_replica_id]
        costs, clock = engine.machine, asyncio.get_running_loop().time
        began, moved = clock(), end - begin
        if self.present(engine) < end:
            sequence = Sequence(self.key, end + 1, 0, self.present(engine))
            engine.add(sequence)
            await sequence.done.wait()
            self._got[engine.name] = end
        whole = moved * costs.bytes_a_token / costs.bytes_a_second
        sending = max(whole - (clock() - began), whole / costs.layers)
        await asyncio.sleep(sending)
        self._got[there.name] = max(end, self._got.get(there.name, 0))
        there.keep(self.key, end)
        self.moved += moved
        return EngineReply(
            moved_tokens=moved,
            moved_bytes=moved * costs.bytes_a_token,
            transfer_us=int(sending * 1e6),
        )
