"""`penstock record`."""
