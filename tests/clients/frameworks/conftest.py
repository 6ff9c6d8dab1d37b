"""What the libraries read before they are loaded."""

from __future__ import annotations

import os

# litellm would ask the network for its table of prices.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
