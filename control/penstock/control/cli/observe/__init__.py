"""`penstock monitoring`: what watches the system."""
