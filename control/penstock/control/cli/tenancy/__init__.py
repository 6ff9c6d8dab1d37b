"""`penstock tenants`, `keys`, `tokens` and `usage`."""
