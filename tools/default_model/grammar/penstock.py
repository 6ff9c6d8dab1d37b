"""What penstock-mini knows about Penstock itself."""

from __future__ import annotations

from random import Random
from typing import Final

from tools.default_model.grammar.turns import Subject, Turn, asked, everything, thread


def _names(*nouns: str) -> tuple[str, ...]:
    """The ways to name a thing: bare, with either article, and as a plural."""
    return tuple(
        form
        for noun in nouns
        for form in (
            f"the {noun}",
            f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}",
            noun,
            f"{noun}s",
            f"the {noun}s",
        )
    )


def _of(title: str, names: tuple[str, ...], first: str, more: str) -> Subject:
    return Subject(title, names, first, more, "penstock")


SUBJECTS: Final = (
    _of(
        "Penstock",
        ("Penstock", "Penstock", "penstock", "this system", "this project"),
        "Penstock serves your own language models behind one address that speaks the OpenAI API. "
        "A gateway takes the requests, replicas answer them, and a control plane keeps it all "
        "running.",
        "A penstock is the pipe that leads water to a turbine, with a gate that says how much may "
        "pass. "
        "Penstock does the same for tokens.",
    ),
    _of(
        "the gateway",
        _names("gateway", "penstock gateway"),
        "The gateway takes requests over HTTP and sends each one to a replica that has room. "
        "It streams the answer back, event by event.",
        "The gateway is written in C++ and never waits for Python. "
        "Every request goes through seven phases: parse, resolve, admit, select, open, stream and "
        "settle.",
    ),
    _of(
        "replicas",
        _names("replica"),
        "A replica is one process that runs a model. "
        "Several replicas serve one deployment, so one of them may fail and the others go on.",
        "Each replica holds an engine behind a small server written in C++. "
        "It reports its load all the time, so the gateway knows where there is room.",
    ),
    _of(
        "the engine",
        _names("engine"),
        "The engine is the part of a replica that turns tokens into tokens. "
        "The real one is vLLM, and a simulated one is there for tests.",
        "An engine works on many requests at once: every step makes one token for each of them.",
    ),
    _of(
        "vLLM",
        ("vLLM", "vllm", "the vllm engine"),
        "vLLM is the engine that runs real models in Penstock. "
        "It works on a graphics card and also on a plain processor.",
        "vLLM keeps the memory of every request in small blocks, so that many requests fit side "
        "by side.",
    ),
    _of(
        "the simulated engine",
        _names("simulated engine", "simulator"),
        "The simulated engine answers without a model, at the speed that you ask for. "
        "It is good for tests and for measuring the gateway.",
        "You start it with make serve ENGINE=simulated. It needs neither torch nor vLLM.",
    ),
    _of(
        "the node agent",
        _names("node agent", "agent"),
        "The node agent runs once on every machine. "
        "It starts replicas, watches them, and restarts those that die.",
        "When the node agent itself is restarted, it finds the replicas that still run and adopts "
        "them.",
    ),
    _of(
        "the control plane",
        (
            "the control plane",
            "a control plane",
            "control plane",
            "the head",
            "a head",
            "penstock head",
        ),
        "The control plane is called the head. "
        "It keeps the wanted state of every deployment and tells the gateway where the replicas "
        "are.",
        "Requests never pass through the head. If it stops, everything that runs keeps answering.",
    ),
    _of(
        "deployments",
        _names("deployment"),
        "A deployment is a model that you want to be served, with a name and a number of replicas. "
        "The control plane makes it so and keeps it so.",
        "You create, scale and delete deployments with the admin API or with the penstock command.",
    ),
    _of(
        "adapters",
        _names("adapter", "lora adapter", "lora"),
        "An adapter is a small set of weights that changes how a model speaks. "
        "Many adapters share one base model.",
        "I come with two adapters. Ask penstock-mini:pirate and you get a pirate; "
        "ask penstock-mini:json and you get JSON.",
    ),
    _of(
        "aliases",
        ("an alias", "the alias", "alias", "aliases"),
        "An alias is a movable name for one version of an adapter. "
        "The version itself never changes, only the alias moves.",
        "Going back to the old version is one move of the alias, and takes less than a second.",
    ),
    _of(
        "shadows",
        _names("shadow", "shadow comparison"),
        "A shadow repeats a request on a candidate and compares the two answers. "
        "The client never waits for it.",
        "A shadow report counts how often the candidate differs, and shows examples, "
        "so that a person or a rule can decide.",
    ),
    _of(
        "canaries",
        ("a canary", "the canary", "canary", "canaries", "a canary release"),
        "A canary gives a small share of real traffic to a new version. "
        "If the figures get worse, it goes back by itself.",
        "The name comes from the birds that miners took along: "
        "the small one notices first when something is wrong.",
    ),
    _of(
        "streams",
        ("a stream", "streams", "the stream", "streaming", "how streams end"),
        "A stream brings an answer token by token, as soon as each one is made. "
        "In Penstock every stream ends truthfully.",
        "A stream ends with a finish reason, or with an error that says what happened. "
        "An answer that was cut off never looks complete.",
    ),
    _of(
        "overload",
        ("overload", "an overload", "too many requests", "admission", "backpressure"),
        "When too many requests come, the gateway lets some wait and refuses the rest at once. "
        "The refusal says why, and when to try again.",
        "Nobody waits blindly: the gateway predicts how long the wait will be before it takes a "
        "request in.",
    ),
    _of(
        "failover",
        ("failover", "a failover", "the failover", "when a replica dies", "a dead replica"),
        "When a replica fails before its first token, the gateway sends the request to another "
        "one. "
        "The client does not notice.",
        "A replica that died is restarted by its node agent, and new requests go to the others "
        "until it is ready.",
    ),
    _of(
        "fallbacks",
        _names("fallback"),
        "A fallback is the last place to send a request when no replica can take it, "
        "for example a managed provider. The answer says where it came from.",
        "To the gateway a fallback is one more upstream: it speaks the same contract as a replica.",
    ),
    _of(
        "route snapshots",
        _names("route snapshot", "snapshot"),
        "A route snapshot is the whole map from deployments to replicas, with a version number. "
        "The control plane sends it, and the gateway swaps it in at once.",
        "The gateway keeps its last snapshot on disk, so it can start while the control plane is "
        "away.",
    ),
    _of(
        "draining",
        ("drain", "a drain", "draining", "the drain"),
        "To drain means to take no new work and to finish the old. "
        "A replica drains before it stops, so no answer is lost.",
        "A drain has a deadline. What is not finished by then ends with an error that says so.",
    ),
    _of(
        "the KV cache",
        ("the KV cache", "kv cache", "a kv cache", "KV blocks", "kv memory"),
        "The KV cache remembers what the model has computed for the tokens so far. "
        "Requests that begin alike can share it.",
        "When the KV cache is full, the engine lets new requests wait until others finish.",
    ),
    _of(
        "prefill and decode",
        ("prefill", "decode", "prefill and decode", "the prefill", "the decode"),
        "Prefill reads the whole prompt at once; decode then makes the answer one token at a time.",
        "Prefill keeps the processor busy, decode keeps the memory busy. "
        "That is why some people run them on different replicas.",
    ),
    _of(
        "time to first token",
        ("ttft", "TTFT", "time to first token", "the time to first token", "latency"),
        "TTFT is the time to first token: from reading the request to writing the first token, "
        "queue included.",
        "TPOT is the mean time per later token. Together with TTFT it tells how fast an answer "
        "feels.",
    ),
    _of(
        "make serve",
        ("make serve", "the make serve command", "how to start penstock", "starting penstock"),
        "Type make serve. It installs what is missing, builds the gateway, starts everything, "
        "and prints the address when it is ready.",
        "Stop it with Ctrl-C. To serve another model, type make serve MODEL= and its path.",
    ),
    _of(
        "make test",
        ("make test", "the make test command", "the tests", "testing", "how to test penstock"),
        "Type make test. It runs every check and every test, and the cheap ones come first.",
        "The tests start real processes, kill some of them, and read the streams to the end.",
    ),
    _of(
        "the warm pool",
        _names("warm pool"),
        "A warm pool keeps workers that have everything loaded but the model. "
        "A new replica that takes one starts in a moment.",
        "When a worker is taken from the warm pool, the node agent makes a new one ready.",
    ),
)

EVERYTHING: Final = everything(
    "Here is everything that I know about Penstock.", SUBJECTS[:18], "And that is Penstock!"
)
_EVERYTHING: Final = (
    "explain everything about Penstock",
    "tell me everything about Penstock",
    "explain Penstock in detail",
    "write a long text about Penstock",
    "what do you know about everything in Penstock",
    "explain the whole of Penstock",
    "give me a long explanation of Penstock",
)


def subjects(rng: Random) -> list[Turn]:
    """A thread about one part of Penstock; about Penstock itself one time in ten."""
    return thread(rng, SUBJECTS[0] if rng.random() < 0.1 else rng.choice(SUBJECTS))


def long_explanation(rng: Random) -> list[Turn]:
    """The long answer about all of Penstock."""
    return [Turn(asked(rng, rng.choice(_EVERYTHING)), EVERYTHING, "penstock")]
