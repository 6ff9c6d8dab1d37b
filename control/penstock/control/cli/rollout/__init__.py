"""`penstock deploy`, `scale`, `set`, `delete`, `test` and `spend`."""
