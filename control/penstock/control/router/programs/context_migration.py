"""Sessions, or categories, stay where their context is. When that engine has `overload` calls more
than the least loaded one, their context moves there, without generating, and they go on there."""

USES = {"lookup", "migrate"}


async def route(request, engines, stats, *, overload=4):
    key, least = request.session or request.category, engines.decode.least_loaded()
    if not key or least is None:
        return least and RouteDecision(least)
    home = engines.decode.get(stats.routing_stats(key).get("home")) or least
    full = home.load > least.load + overload or not home.places_left
    target = least if full else home
    stats.record_routing_stats(key, {"home": target.id})
    if target is not home and home.moves_kv and target.moves_kv:
        held = await home.lookup(request)
        if held:
            await home.migrate(request, target, end=held)
    return RouteDecision(target)
