"""Data parallel: each request is computed whole by one engine, the one with the fewest calls."""


async def route(request, engines, stats):
    return RouteDecision(engines.decode.least_loaded())
