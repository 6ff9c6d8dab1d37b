"""As prefill_decode, where the prompt is known: what the decode engine holds is not sent, and when
fewer than `least` tokens are missing there, it computes them itself."""

USES = {"lookup", "prep_recv", "remote_send", "tokenize"}


async def route(request, engines, stats, *, least=256):
    decode, held = await engines.decode.moving.most_cached(request)
    prefill = engines.prefill.moving.but(decode).shortest_queue()
    if prefill is None:
        return RouteDecision(decode or engines.decode.least_loaded())
    prompt = await decode.tokenize(request)
    if prompt.length - held < least:
        return RouteDecision(decode)
    kv, held = await decode.prep_recv(request)
    await prefill.remote_send(kv, begin=held)
    return RouteDecision(decode, kv)
