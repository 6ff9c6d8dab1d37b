"""From a model's name to an engine that runs: files, settings, environment, processes."""
