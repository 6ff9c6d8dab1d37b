"""`penstock quarantine`."""
