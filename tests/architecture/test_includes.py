"""The import law of the C++ rooms: who may include whom, and which foreign library lives where."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# folder of gateway_cpp/src -> folders it may include besides itself
GATEWAY_LAW: dict[str, set[str]] = {
    "base": set(),
    "openai": {"base", "routing"},
    "anthropic": {"base"},
    "dialects": {"base", "openai", "anthropic"},
    "routing": {"base"},
    "admission": {"base", "routing"},
    "dispatch": {"base", "routing", "admission"},
    "runtime": {"base"},
    "observe": {"base"},
    "upstream": {"base", "openai", "routing", "admission", "dispatch", "runtime"},
    "control_plane": {"base", "openai", "routing", "admission", "dispatch", "observe"},
    "proxy": {
        *("base", "openai", "dialects", "routing", "admission", "dispatch", "runtime"),
        *("upstream", "control_plane", "observe"),
    },
    "tls": {"base"},
    "http": {
        *("base", "openai", "dialects", "routing", "admission", "dispatch", "runtime"),
        *("upstream", "control_plane", "observe", "proxy", "tls"),
    },
}
# foreign header -> folders of gateway_cpp/src that may include it
FOREIGN = {
    r"boost/beast": {"http"},
    r"boost/asio": {"http", "proxy", "upstream", "control_plane", "runtime", "."},
    r"grpcpp/|grpc/|\.grpc\.pb\.h": {"upstream", "control_plane"},
    r"(?<!grpc)\.pb\.h": {"upstream", "control_plane", "observe", "proxy", "http"},
    r"nghttp2": {"upstream"},
    r"simdjson": {"openai", "control_plane"},
    r"^zlib\.h": {"http", "observe"},
    r"^curl/": {"observe"},
    r"openssl/(?!sha|evp|crypto\.h)": {"tls"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def includes(path: Path) -> Iterator[tuple[str, str]]:
    """Every include of a file: the bracket or quote, and the name."""
    for match in INCLUDE.finditer(path.read_text()):
        yield match.group(1), match.group(2)


def breaches(folder: str, name: str) -> list[str]:
    """What is wrong with one include in a folder of gateway_cpp/src."""
    found = []
    other = name.split("/")[0]
    known = other in GATEWAY_LAW and folder in GATEWAY_LAW
    if known and other != folder and other not in GATEWAY_LAW[folder]:
        found.append(f"{folder} may not know {other}")
    for pattern, allowed in FOREIGN.items():
        if re.search(pattern, name) and folder not in allowed:
            found.append(f"{folder} may not include {name}")
    return found


def gateway_files() -> list[Path]:
    """The gateway's sources."""
    return sorted((ROOT / "gateway_cpp" / "src").rglob("*.[hc]*"))


def test_every_include_of_the_gateway_keeps_the_law() -> None:
    files = gateway_files()
    assert files, "no sources found in gateway_cpp/src"
    wrong = [
        f"{path.relative_to(ROOT)}: {text}"
        for path in files
        for _, name in includes(path)
        for text in breaches(path.parent.relative_to(ROOT / "gateway_cpp" / "src").as_posix(), name)
    ]
    assert not wrong, "\n".join(wrong)


def test_of_http_those_alone_know_the_proxy_who_serve_requests_and_none_for_its_plumbing() -> None:
    knows = {
        (path.name, name)
        for path in gateway_files()
        if path.parent.name == "http"
        for _, name in includes(path)
        if name.startswith(("proxy/", "upstream/"))
    }
    assert knows == {
        ("parts.h", "proxy/parts.h"),  # hands it what it needs
        ("http_reply.h", "proxy/reply.h"),  # is what the proxy answers through
        ("session.h", "proxy/request_flow.h"),  # hands requests to it
        ("io_thread.h", "proxy/program_links.h"),  # owns those of its thread
        ("io_thread.h", "proxy/request_flow.h"),  # puts the two together
        ("io_thread.h", "proxy/shadow_copies.h"),  # owns those of its thread
        ("io_thread.h", "proxy/shadow_questions.h"),  # likewise
        ("io_thread.h", "upstream/replica_pool.h"),
    }


def test_pybind11_lives_in_the_extensions_own_files_alone() -> None:
    files = sorted((ROOT / "replica" / "native").glob("*.[hc]*"))
    assert files, "no sources found in replica/native"
    users = {p.name for p in files for _, name in includes(p) if "pybind11" in name}
    assert users == {"module.cc", "python_writes.h"}


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("base", "routing/route_table.h"),
        ("routing", "boost/asio.hpp"),
        ("openai", "grpcpp/grpcpp.h"),
        ("proxy", "http/session.h"),
        ("proxy", "boost/beast/core.hpp"),
        ("routing", "penstock/v1/inference.pb.h"),
        ("http", "nghttp2/nghttp2.h"),
        ("http", "penstock/v1/inference.grpc.pb.h"),
        ("http", "openssl/ssl.h"),
    ],
)
def test_a_forbidden_include_is_found(folder: str, name: str) -> None:
    assert breaches(folder, name)
