"""Frozen settings of the head and of the node agent.

Each value is checked once, here, so that nothing behind this module meets a bad one. Flags and
environment variables are read by `cli/` alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from penstock.control.errors import invalid_setting
from penstock.control.trace_choice import TRACES, TraceChoice

GATEWAY_ADDRESS = "127.0.0.1:8080"
ADMIN_ADDRESS = "127.0.0.1:8081"
RPC_ADDRESS = "127.0.0.1:8082"
METRICS_ADDRESS = "127.0.0.1:8083"  # of the gateway
HEAD_METRICS_ADDRESS = "127.0.0.1:8084"
NODE_METRICS_ADDRESS = "127.0.0.1:8085"
DATA_DIR = ".penstock"
GATEWAY_ID = "gw-1"
OPENAI_PATH = "/v1"
EVERYWHERE = ("0.0.0.0", "::", "[::]")
LOOPBACK = frozenset(("localhost", "127.0.0.1", "[::1]"))
START_LIMIT = timedelta(minutes=30)
ADAPTER_CACHE_GIB = 20.0
DEEP_CHECK_EVERY = timedelta(seconds=60)
ANY_PORT = "0"
AUTO = "auto"
MOST_WARM = 64
MOST_KEPT = 100_000  # GiB, days
MOST_ENGINES = 10_000
LEAST_SEGMENT, MOST_SEGMENT = 1 << 20, 64 << 20  # bytes
_HOST = re.compile(r"(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\]")


@dataclass(frozen=True, slots=True)
class HeadTimings:
    """How patient the head is; tests shorten it."""

    # Sent to agents: raise only where thousands of nodes make the head busy.
    heartbeat: timedelta = timedelta(seconds=1)
    # An agent not heard for so long is shown as silent; its replicas stay in the routes.
    silent_after: timedelta = timedelta(seconds=5)
    # Silent for so long, and a replica that does not answer the head either is replaced.
    lost_after: timedelta = timedelta(seconds=30)
    # Lost replicas and nodes stay in the lists for so long.
    forget_after: timedelta = timedelta(minutes=10)
    # The head's own Health calls to each replica, and how long one may take.
    ping_every: timedelta = timedelta(seconds=1)
    ping_timeout: timedelta = timedelta(seconds=3)
    # A replica that is not ready by then is stopped and tried anew. Longer than the agents' own
    # limit, which knows when the process began and says why.
    ready_deadline: timedelta = 1.5 * START_LIMIT
    # A replica that its agent gave up on is tried anew after this.
    retry_failed_after: timedelta = timedelta(minutes=1)
    # Each ready replica shows so often that it does its work: a few tokens, or a vector; 0: never.
    # Twice nothing: it is replaced. Raise where even that little is felt.
    deep_check_every: timedelta = DEEP_CHECK_EVERY
    # How long a restarted head waits for the nodes that it knows before it tells routes.
    expect_nodes_for: timedelta = timedelta(seconds=3)
    # How long a head that takes over listens to nodes and gateways first.
    take_over_after: timedelta = timedelta(seconds=5)
    # What running calls get when a replica is drained.
    drain: timedelta = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class LogRetention:
    """How much is kept of log files, those of a data directory together."""

    gib: float = 2.0  # raise for a longer access log: a line of it takes some 600 bytes
    days: float = 14.0

    def __post_init__(self) -> None:
        for flag, value in (("--log-keep-gib", self.gib), ("--log-keep-days", self.days)):
            if not 0 <= value < MOST_KEPT:
                raise invalid_setting(
                    f"{flag} is {value:g}: it must be 0, to keep no more than what is being written"
                    f" to, or more, and less than {MOST_KEPT:,}"
                )

    @property
    def most_bytes(self) -> int:
        """Of all files together; those that are written to stay in any case."""
        return int(self.gib * (1 << 30))

    @property
    def longest(self) -> timedelta:
        """How old a file may become that nobody writes to."""
        return timedelta(days=self.days)

    @property
    def segment_bytes(self) -> int:
        """How long a file may become that is written to: a small part of all."""
        return max(LEAST_SEGMENT, min(MOST_SEGMENT, self.most_bytes // 16))


LOGS = LogRetention()


@dataclass(frozen=True, slots=True)
class RecordKeeping:
    """How prompts and answers are kept, where shadows and recordings have any."""

    days: float = 30.0
    gib: float = 1.0  # of all of them together; beyond it the oldest go
    key_file: Path | None = None  # that they are encrypted under; None: they are not
    redaction: Path | None = None  # what is taken out of them, beside what always is

    def __post_init__(self) -> None:
        for flag, value in (("--record-keep-days", self.days), ("--record-keep-gib", self.gib)):
            if not 0 <= value < MOST_KEPT:
                raise invalid_setting(
                    f"{flag} is {value:g}: it must be 0, to keep nothing, or more, and less than "
                    f"{MOST_KEPT:,}"
                )


RECORDS = RecordKeeping()


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """How many engines there may be at once; raise where the machines hold more."""

    per_token: int = 16  # that one token asked for
    total: int = 64

    def __post_init__(self) -> None:
        flags = ("--max-engines-per-token", self.per_token), ("--max-engines", self.total)
        for flag, value in flags:
            if not 0 <= value <= MOST_ENGINES:
                raise invalid_setting(
                    f"{flag} is {value}: it must be 0, for none, to {MOST_ENGINES:,}"
                )


ENGINES = EngineLimits()


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files. With certificate and key a process serves TLS, with a CA it dials with TLS."""

    cert: Path | None = None
    key: Path | None = None
    ca: Path | None = None

    def __post_init__(self) -> None:
        if (self.cert is None) != (self.key is None):
            given, missing = (
                ("--tls-cert", "--tls-key") if self.cert else ("--tls-key", "--tls-cert")
            )
            raise invalid_setting(f"{given} is given without {missing}: a server needs both")


@dataclass(frozen=True, slots=True)
class GatewayTls:
    """PEM files of the port that clients of a gateway reach. The gateway reads them, and reads them
    again when they change."""

    cert: Path
    key: Path


def gateway_tls(cert: Path | None, key: Path | None, *, prefix: str = "--") -> GatewayTls | None:
    """HTTPS with both files, None (plain HTTP) without any. `prefix`: of the flags that named them.
    Raises `invalid-setting` for one alone."""
    if cert is None and key is None:
        return None
    if cert is None or key is None:
        given, missing = ("tls-cert", "tls-key") if cert else ("tls-key", "tls-cert")
        raise invalid_setting(
            f"{prefix}{given} is given without {prefix}{missing}: HTTPS takes both, HTTP neither"
        )
    return GatewayTls(cert.expanduser().absolute(), key.expanduser().absolute())


@dataclass(frozen=True, slots=True)
class HeadSettings:
    """Everything `penstock head` is told.

    Addresses are "host:port"; of --admin and --rpc, port 0 means any free one.
    """

    data_dir: Path
    admin: str = ADMIN_ADDRESS
    rpc: str = RPC_ADDRESS
    gateway: str = GATEWAY_ADDRESS
    metrics: str = METRICS_ADDRESS  # of the local gateway; empty: none
    head_metrics: str = ""  # of the head itself; empty: none
    gateway_binary: Path | None = None  # None: the one built in this checkout, or on PATH
    gateway_threads: int | None = None  # None: the gateway's own default
    # Let the gateway listen beyond the loopback, for whoever reaches it.
    open_gateway: bool = False
    client_addresses: bool = True  # in the gateway's log
    traces: TraceChoice = TRACES  # of the local gateway
    explain_budget_bytes: int | None = None  # likewise; None: its own default
    run_gateway: bool = True
    # Of the process that compares shadows, on the host of --rpc; 0: any free one.
    comparer_port: int = 0
    records: RecordKeeping = RECORDS
    # What the local gateway shows its clients; None: it speaks plain HTTP.
    gateway_tls: GatewayTls | None = None
    public_url: str = ""  # where clients reach a gateway; empty: at the local one's address
    engines: EngineLimits = ENGINES
    gateway_id: str = GATEWAY_ID
    # Where the local gateway is: it prefers replicas of this node, and of this zone; empty: none.
    node: str = ""
    zone: str = ""
    log_level: str = "info"
    logs: LogRetention = LOGS
    # Shown to agents, gateways and replicas and asked of them; None: neither shown nor asked for.
    cluster_token_file: Path | None = None
    # Certificate and key: of admin and rpc. CA: of the agents that the head dials.
    tls: TlsFiles = TlsFiles()
    # Names, beside the loopback's and its own addresses, that admin API and gateway answer to.
    allow_hosts: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()  # of web pages that may call the gateway; "*": any
    timings: HeadTimings = HeadTimings()
    existing_store: bool = False  # none is made where there is none
    take_over: bool = False  # go on with this store, whatever nodes and gateways know

    def __post_init__(self) -> None:
        for flag, address in (
            ("--admin", self.admin),
            ("--rpc", self.rpc),
            ("--gateway", self.gateway),
            ("--gateway-metrics", self.metrics or METRICS_ADDRESS),
            ("--head-metrics", self.head_metrics or HEAD_METRICS_ADDRESS),
        ):
            split_address(address, flag=flag)
        if self.run_gateway and split_address(self.gateway, flag="--gateway")[1] == 0:
            raise invalid_setting(f"--gateway is {self.gateway!r}: name a port, clients have to")
        check_public_url(self.public_url)
        if self.timings.deep_check_every < timedelta(0):
            seconds = self.timings.deep_check_every.total_seconds()
            raise invalid_setting(
                f"--deep-check-every is {seconds:g}: it must be 0 seconds, for never, or more"
            )
        if self.gateway_threads is not None and self.gateway_threads < 1:
            raise invalid_setting(
                f"--gateway-threads is {self.gateway_threads}: it must be 1 or more"
            )

    @property
    def base_url(self) -> str | None:
        """What a client of the OpenAI API is told of where a gateway is; None: none is known."""
        url = self.public_url.rstrip("/").removesuffix(OPENAI_PATH)
        if not url and self.run_gateway:
            scheme = "http" if self.gateway_tls is None else "https"
            url = f"{scheme}://{reachable(self.gateway, flag='--gateway')}"
        return f"{url}{OPENAI_PATH}" if url else None


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """Everything `penstock node` is told."""

    head: str  # host:port of the head's Nodes service
    data_dir: Path
    node_id: str  # survives restarts of the agent
    listen: str = "127.0.0.1:0"  # where NodeAgent is served
    host: str = "127.0.0.1"  # where this node's replicas are reached from outside
    replica_ports: str = ANY_PORT  # "first-last": replicas listen at one of these
    zone: str = ""  # which nodes are near to each other, in the operator's words
    metrics: str = ""  # host:port where Prometheus finds them; empty: none
    log_level: str = "info"
    logs: LogRetention = LOGS
    cluster_token_file: Path | None = None  # as the head's
    # Certificate and key: of --listen. CA: of the head.
    tls: TlsFiles = TlsFiles()
    # Whether engine arguments may be set that run code which comes with a model.
    allow_model_code: bool = False
    # From a replica's start to ready, where its deployment says nothing; downloads included.
    start_limit: timedelta = START_LIMIT
    # Of fetched adapters; beyond it goes what no replica here holds or is to hold.
    adapter_cache_gib: float = ADAPTER_CACHE_GIB
    # Below it lie the keys that deployments name by api_key_file; None: `secrets` in `data_dir`.
    secrets_dir: Path | None = None
    # Where provider replicas may send anything to; empty: anywhere.
    provider_hosts: tuple[str, ...] = ()
    # Processes that have imported vLLM and wait to be a replica; None: as the machine allows.
    warm: int | None = None
    # Where router programs say how they are asked; None: `programs` in `data_dir`.
    programs_dir: Path | None = None
    # That router programs may be; imported as code of this machine's owner.
    program_modules: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        split_address(self.head, flag="--head")
        host, _ = split_address(self.listen, flag="--listen")
        if host not in LOOPBACK and self.cluster_token_file is None:
            raise invalid_setting(
                f"--listen is {self.listen}, so that anybody who reaches it could start processes "
                "here: give --cluster-token-file, a copy of the head's cluster.token of mode 0600, "
                "or put it into --data-dir"
            )
        _check_ports(self.replica_ports)
        if self.metrics:
            split_address(self.metrics, flag="--node-metrics")
        if not self.node_id:
            raise invalid_setting("--node-id is empty: give this machine a name")
        if self.start_limit <= timedelta(0):
            seconds = self.start_limit.total_seconds()
            raise invalid_setting(f"--start-limit is {seconds:g}: it must be more than 0 seconds")
        if not 0 <= self.adapter_cache_gib < 1e9:
            raise invalid_setting(
                f"--adapter-cache-gib is {self.adapter_cache_gib:g}: it must be 0, to keep nothing"
                " that is not in use, or more"
            )


def split_modules(text: str) -> tuple[str, ...]:
    """Modules with commas between them; empty: none. Raises `invalid-setting`."""
    modules = tuple(part.strip() for part in text.split(",") if part.strip())
    for module in modules:
        if not all(part.isidentifier() for part in module.split(".")):
            raise invalid_setting(
                f"--program-modules has {module!r}: it must be a module's name: ours.routing"
            )
    return modules


def warm_members(text: str) -> int | None:
    """What --warm says; None: as the machine allows. Raises `invalid-setting`."""
    if text == AUTO:
        return None
    if text.isascii() and text.isdigit() and int(text) <= MOST_WARM:
        return int(text)
    raise invalid_setting(f"--warm is {text!r}: it must be {AUTO}, or 0 to {MOST_WARM} processes")


def _check_ports(ports: str) -> None:
    first, _, last = ports.partition("-")
    numbers = [int(text) for text in (first, last) if text.isascii() and text.isdigit()]
    if ports != ANY_PORT and not (len(numbers) == 2 and 0 < numbers[0] <= numbers[1] < 65536):
        raise invalid_setting(
            f"--replica-ports is {ports!r}: it must be first-last, such as 9000-9015"
        )


def split_hosts(text: str) -> tuple[str, ...]:
    """Hosts with commas between them, "api.openai.com,*.amazonaws.com"; empty: none. Raises
    `invalid-setting`."""
    hosts = tuple(part.strip().lower() for part in text.split(",") if part.strip())
    for host in hosts:
        if not _HOST.fullmatch(host):
            raise invalid_setting(
                f"--provider-hosts has {host!r}: it must be a host without port and scheme, such as"
                " api.openai.com, or *.amazonaws.com for all below"
            )
    return hosts


def check_public_url(url: str) -> None:
    """Raises `invalid-setting` for what clients could not use; empty: none is given."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        usable = usable and not (parts.query or parts.fragment or "@" in parts.netloc)
    except ValueError:
        usable = False
    if url and not (usable and url.isprintable() and " " not in url):
        raise invalid_setting(
            f"--public-url is {url!r}: it must be http:// or https:// with a host, such as"
            " https://llm.example.com/v1"
        )


def split_address(address: str, *, flag: str) -> tuple[str, int]:
    """Takes "host:port" apart; `flag` names the setting in the error."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise invalid_setting(
            f"{flag} is {address!r}: it must be host:port, such as 127.0.0.1:8080"
        )
    return host, int(port)


def reachable(address: str, *, flag: str) -> str:
    """The address as seen from this machine: one that means every interface is the loopback."""
    host, port = split_address(address, flag=flag)
    return f"127.0.0.1:{port}" if host in EVERYWHERE else f"{host}:{port}"
