"""`penstock canary`."""
