"""How the models that come with Penstock are made: `grammar/`, the training, and README.md."""
