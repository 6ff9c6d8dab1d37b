"""As balanced_prefill_decode, with a share that follows the queues: half of what the prefill engine
has more to compute than the decode engine, and at most `most` of a prompt."""

USES = {"prep_recv", "remote_send", "tokenize"}


async def route(request, engines, stats, *, most=0.5):
    decode = engines.decode.moving.least_loaded()
    prefill = engines.prefill.moving.but(decode).shortest_queue()
    if prefill is None:
        return RouteDecision(engines.decode.least_loaded())
    length = (await decode.tokenize(request)).length
    share = min(most * length, max(0, prefill.waiting_tokens - decode.waiting_tokens) / 2)
    kv, held = await decode.prep_recv(request, end=int(length - share))
    await prefill.remote_send(kv, begin=held)
    return RouteDecision(decode, kv)
