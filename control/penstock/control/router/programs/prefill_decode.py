"""Prefill and decode apart: one engine computes the prompt's KV, another one generates with it."""

USES = {"prep_recv", "remote_send"}


async def route(request, engines, stats):
    decode = engines.decode.moving.least_loaded()
    prefill = engines.prefill.moving.but(decode).shortest_queue()
    if prefill is None:
        return RouteDecision(engines.decode.least_loaded())
    kv, held = await decode.prep_recv(request)
    await prefill.remote_send(kv, begin=held)
    return RouteDecision(decode, kv)
