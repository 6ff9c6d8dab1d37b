"""The outside world behind small interfaces: time, processes, dialled connections.

Imported only by composition roots; everything else declares the Protocol it needs.
"""

import sys

# httpx brings a command line of its own where it can: all of rich and click, for nobody here.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
