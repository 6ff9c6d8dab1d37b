"""`penstock shadow`."""
