"""`penstock status`, `drain` and `replace`."""
