"""As prefill_decode, but the decode engine computes its share of each prompt, the last part."""

USES = {"prep_recv", "remote_send", "tokenize"}


async def route(request, engines, stats, *, pd_balance_factor=0.1):
    decode = engines.decode.moving.least_loaded()
    prefill = engines.prefill.moving.but(decode).shortest_queue()
    if prefill is None or pd_balance_factor >= 1:
        return RouteDecision(engines.decode.least_loaded())
    prompt = await decode.tokenize(request)
    kv, held = await decode.prep_recv(request, end=int(prompt.length * (1 - pd_balance_factor)))
    await prefill.remote_send(kv, begin=held)
    return RouteDecision(decode, kv)
