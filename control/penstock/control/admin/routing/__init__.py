"""What gateways refuse, in the admin API."""
