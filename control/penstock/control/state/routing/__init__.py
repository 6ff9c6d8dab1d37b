"""What gateways are told of where requests go, and of when they go nowhere. Pure."""
