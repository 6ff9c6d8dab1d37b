"""`penstock adapters` and `alias`."""
