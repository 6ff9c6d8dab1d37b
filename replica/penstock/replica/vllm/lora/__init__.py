"""The adapters of the real engine: their files, and their ways in and out of it."""
