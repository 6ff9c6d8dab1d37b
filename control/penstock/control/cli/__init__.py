"""The `penstock` command: a file for each group of verbs. It parses and prints, no more."""
