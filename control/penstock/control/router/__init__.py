"""Router programs: a few lines of Python that say where requests go, in a process of their own.

The node agent starts `python -m penstock.control.router` beside each gateway that serves the
deployment; gateways ask it by `router.proto`. What a program may use is `api.py`; what holds it in
its bounds is `sandbox.py`. It knows no head, no token but its own, and no prompt: engine calls are
made by the gateway.
"""
