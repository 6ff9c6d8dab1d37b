"""What stands on the wire, a line each: what `proto/` says now against what was written down of it.

`.venv/bin/python -m tests.architecture.proto_table` writes it down anew in `proto/wire.txt`; it
refuses where a peer from before would read something else.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorSet,
    ServiceDescriptorProto,
)

PROTO = Path(__file__).resolve().parents[2] / "proto"
KEPT = PROTO / "wire.txt"
RENEW = ".venv/bin/python -m tests.architecture.proto_table"

Table = Mapping[str, str]
"""What a thing is, by its kind and place: "field NodeInfo 1" is "string node_id"."""


def table_of(proto: Path) -> Table:
    """Of the files below a folder, as they are."""
    files = sorted(str(path.relative_to(proto)) for path in proto.rglob("*.proto"))
    with TemporaryDirectory() as folder:
        out = Path(folder, "set")
        # In a process of its own: the compiler's protobuf and the replica's extension crash in one.
        protoc = [sys.executable, "-m", "grpc_tools.protoc"]
        subprocess.run([*protoc, "-I", proto, f"--descriptor_set_out={out}", *files], check=True)
        found = FileDescriptorSet.FromString(out.read_bytes())
    return dict(line for file in found.file for line in _lines(file))


def text_of(table: Table) -> str:
    """A table as it is written down: a thing a line, by kind, place and number."""
    return "".join(f"{key}: {table[key]}\n" for key in sorted(table, key=_order))


def parsed(text: str) -> Table:
    """What was written down."""
    return dict(tuple(line.split(": ", 1)) for line in text.splitlines())  # type: ignore[misc]


def breaks(kept: Table, now: Table) -> Iterator[str]:
    """What a peer that goes by `kept` would misread, each with what to do."""
    for key, was in kept.items():
        kind, place, *number = key.split()
        if key not in now:
            left_out = f"reserved {place} {''.join(number)}"
            if kind not in ("field", "value"):
                yield f"{key} ({was}) is gone: peers from before go by it"
            elif left_out not in now:
                yield f"{key} ({was}) is gone: say `reserved {''.join(number)};` in its place"
        elif now[key] != was:
            yield f"{key} was {was}, and is {now[key]}: add another instead"


def renewed(kept: Table, now: Table) -> str:
    """What is to be written down now. Raises `ValueError` where something breaks."""
    if wrong := list(breaks(kept, now)):
        raise ValueError("\n".join(wrong))
    return text_of(now)


def _lines(file: Any) -> Iterator[tuple[str, str]]:
    for enum in file.enum_type:
        yield from _enum(enum.name, enum)
    for message in file.message_type:
        yield from _message(message.name, message)
    for service in file.service:
        yield from _service(service)


def _message(name: str, message: DescriptorProto) -> Iterator[tuple[str, str]]:
    for field in message.field:
        yield f"field {name} {field.number}", _field(message, field)
    for each in message.reserved_range:
        yield from _reserved(name, range(each.start, each.end))
    for enum in message.enum_type:
        yield from _enum(f"{name}.{enum.name}", enum)
    for inner in message.nested_type:
        yield from _message(f"{name}.{inner.name}", inner)


def _field(message: DescriptorProto, field: FieldDescriptorProto) -> str:
    words = [FieldDescriptorProto.Label.Name(field.label).removeprefix("LABEL_").lower()]
    words = words if words != ["optional"] else []
    if field.proto3_optional:
        words = ["optional"]
    elif field.HasField("oneof_index"):
        words = [f"oneof {message.oneof_decl[field.oneof_index].name}"]
    kind = FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    return " ".join([*words, field.type_name or kind, field.name])


def _enum(name: str, enum: EnumDescriptorProto) -> Iterator[tuple[str, str]]:
    for value in enum.value:
        yield f"value {name} {value.number}", value.name
    for each in enum.reserved_range:
        yield from _reserved(name, range(each.start, each.end + 1))


def _reserved(name: str, numbers: Iterable[int]) -> Iterator[tuple[str, str]]:
    return ((f"reserved {name} {number}", "for good") for number in numbers)


def _service(service: ServiceDescriptorProto) -> Iterator[tuple[str, str]]:
    for method in service.method:
        asked = f"{'stream ' * method.client_streaming}{method.input_type}"
        told = f"{'stream ' * method.server_streaming}{method.output_type}"
        yield f"rpc {service.name}.{method.name}", f"{asked} -> {told}"


def _order(key: str) -> tuple[str, str, int]:
    kind, place, *number = key.split()
    return kind, place, int("".join(number) or 0)


def main() -> int:
    """Writes the table down anew, or says why not."""
    try:
        KEPT.write_text(renewed(parsed(KEPT.read_text()), table_of(PROTO)))
    except ValueError as error:
        sys.stderr.write(f"{KEPT.name} stays as it is:\n{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
