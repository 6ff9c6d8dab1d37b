"""A local Bedrock: its wire as boto3 meets it, signatures checked and events framed by hand."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from urllib.parse import unquote

import botocore.auth
import botocore.awsrequest
import botocore.credentials

from tests.fakes.provider_server import Asked, ProviderServer, Scenario, Wire

MODEL: Final = "anthropic.claude-test-v1:0"
REGION: Final = "eu-west-1"
KEY_ID: Final = "AKIATESTKEY123456789"
SECRET: Final = "wJalrXUtnFEMIK7MDENGbPxRfiCYTESTKEY"
REQUEST_ID: Final = "4d1c7f2e-0000-4000-8000-1a2b3c4d5e6f"
_CONTEXT: Final = 4096


def usual(pace: float = 0.0, keys: Mapping[str, str] | None = None) -> Scenario:
    """Answers with words that follow from the prompt, one each `pace` seconds, where the signature
    is one of these keys' (id to secret)."""
    known = {KEY_ID: SECRET} if keys is None else keys

    async def answer(asked: Asked, wire: Wire) -> None:
        if wrong := signature_fault(asked, known):
            return await refuse(403, "UnrecognizedClientException", wrong)(asked, wire)
        body = json.loads(asked.body)
        most = body.get("inferenceConfig", {}).get("maxTokens")
        if (most or 0) > _CONTEXT:
            told = f"The maximum tokens you requested {most} exceeds the model limit of {_CONTEXT}."
            return await refuse(400, "ValidationException", told)(asked, wire)
        seed = sum(asked.body)
        words = [f"w{(seed + index) % 997} " for index in range(most or 64)]
        reason = "max_tokens" if most else "end_turn"
        if asked.path.endswith("/converse"):
            return await wire.whole(200, _unary("".join(words), reason, len(words)), _headers())
        await streamed(*text_events(words, reason), pace=pace)(asked, wire)

    return answer


def text_events(
    words: list[str], reason: str = "end_turn", completion: int = 0
) -> list[tuple[str, dict[str, Any]]]:
    """The events of a text."""
    deltas = [
        ("contentBlockDelta", {"delta": {"text": word}, "contentBlockIndex": 0}) for word in words
    ]
    return [
        ("messageStart", {"role": "assistant"}),
        *deltas,
        ("contentBlockStop", {"contentBlockIndex": 0}),
        *closing(reason, completion or len(words)),
    ]


def closing(reason: str, completion: int = 1) -> list[tuple[str, dict[str, Any]]]:
    """The events of a message's end."""
    return [
        ("messageStop", {"stopReason": reason}),
        ("metadata", {"usage": _usage(completion), "metrics": {"latencyMs": 5}}),
    ]


def streamed(
    *events: tuple[str, dict[str, Any]],
    pace: float = 0.0,
    then: bytes = b"",
    cut: bool = False,
    silent: bool = False,
) -> Scenario:
    """Sends these events, then these bytes, and ends, breaks, or says nothing more."""

    async def answer(asked: Asked, wire: Wire) -> None:
        await wire.begin("application/vnd.amazon.eventstream", _headers())
        for kind, payload in events:
            await wire.portion(frame(kind, payload))
            if pace:
                await asyncio.sleep(pace)
        if then:
            await wire.portion(then)
        if silent:
            await asyncio.sleep(60)
        if cut:
            wire.cut()
        else:
            await wire.end()

    return answer


def unary(
    content: list[dict[str, Any]], reason: str, usage: dict[str, Any] | None = None
) -> Scenario:
    """Answers with a message of these blocks."""
    body = {"output": {"message": {"role": "assistant", "content": content}}}
    rest = {"stopReason": reason, "usage": usage or _usage(7), "metrics": {"latencyMs": 5}}

    async def answer(asked: Asked, wire: Wire) -> None:
        await wire.whole(200, json.dumps({**body, **rest}).encode(), _headers())

    return answer


def refuse(
    status: int, code: str, message: str, headers: Mapping[str, str] | None = None
) -> Scenario:
    """Answers with an error."""

    async def answer(asked: Asked, wire: Wire) -> None:
        told = {**_headers(), "x-amzn-errortype": f"{code}:http://internal/", **(headers or {})}
        await wire.whole(status, json.dumps({"message": message}).encode(), told)

    return answer


def assumed(key_id: str, secret: str) -> Scenario:
    """What AWS's token service answers to who assumes a role."""
    body = f"""<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<AssumeRoleResult><Credentials><AccessKeyId>{key_id}</AccessKeyId>
<SecretAccessKey>{secret}</SecretAccessKey><SessionToken>token-of-role</SessionToken>
<Expiration>2199-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult>
</AssumeRoleResponse>"""

    async def answer(asked: Asked, wire: Wire) -> None:
        await wire.whole(200, body.encode(), {"content-type": "text/xml"})

    return answer


def frame(kind: str, payload: Mapping[str, Any], message_type: str = "event") -> bytes:
    """One message of AWS's event stream: prelude, its CRC, headers, payload, the CRC of all."""
    body = json.dumps(payload).encode()
    names = {"event": ":event-type", "exception": ":exception-type"}
    fields = {
        names[message_type]: kind,
        ":content-type": "application/json",
        ":message-type": message_type,
    }
    headers = b"".join(_header(name, value) for name, value in fields.items())
    prelude = struct.pack("!II", len(headers) + len(body) + 16, len(headers))
    message = prelude + struct.pack("!I", binascii.crc32(prelude)) + headers + body
    return message + struct.pack("!I", binascii.crc32(message))


def signature_fault(asked: Asked, keys: Mapping[str, str]) -> str:
    """What is wrong with a request's signature; empty where it is right. Computed by AWS's own
    signer, from what came over the wire."""
    authorization = asked.headers.get("authorization", "")
    fields = dict(part.strip().split("=", 1) for part in authorization[17:].split(","))
    key_id, _, region, service, _ = fields["Credential"].split("/")
    if key_id not in keys:
        return f"The security token included in the request is invalid: {authorization}"
    signed = {name: asked.headers[name] for name in fields["SignedHeaders"].split(";")}
    url = f"http://{asked.headers['host']}{asked.path}"
    request = botocore.awsrequest.AWSRequest(asked.method, url, signed, asked.body)
    request.context["timestamp"] = asked.headers["x-amz-date"]
    credentials = botocore.credentials.Credentials(key_id, keys[key_id])
    signer = botocore.auth.SigV4Auth(credentials, service, region)
    text = signer.string_to_sign(request, signer.canonical_request(request))
    if signer.signature(text, request) != fields["Signature"]:
        return "The request signature we calculated does not match the one you provided."
    return "" if (region, service) == (REGION, "bedrock") else f"wrong scope {region}/{service}"


def sent(asked: Asked) -> SimpleNamespace:
    """What a request asks for: its model and its body."""
    model = unquote(asked.path.split("/")[2])
    return SimpleNamespace(model=model, **json.loads(asked.body))


def settings(server: ProviderServer, *more: str) -> tuple[str, ...]:
    """The settings of an engine that speaks with this server."""
    return (f"endpoint_url={server.url}", f"region={REGION}", *more)


def write_keys(path: Path, key_id: str, secret: str, profile: str = "default") -> None:
    """A credentials file of AWS's."""
    keys = f"aws_access_key_id = {key_id}\naws_secret_access_key = {secret}\n"
    path.write_text(f"[{profile}]\n{keys}")


def _headers() -> dict[str, str]:
    return {"x-amzn-requestid": REQUEST_ID}


def _usage(completion: int) -> dict[str, int]:
    return {
        "inputTokens": 10,
        "outputTokens": completion,
        "totalTokens": 17 + completion,
        "cacheReadInputTokens": 4,
        "cacheWriteInputTokens": 3,
    }


def _unary(text: str, reason: str, completion: int) -> bytes:
    message = {"role": "assistant", "content": [{"text": text}]}
    usage = _usage(completion)
    answer = {"output": {"message": message}, "stopReason": reason, "usage": usage}
    return json.dumps({**answer, "metrics": {"latencyMs": 5}}).encode()


def _header(name: str, value: str) -> bytes:
    told = value.encode()
    return bytes([len(name)]) + name.encode() + b"\x07" + struct.pack("!H", len(told)) + told


def blob(data: bytes) -> str:
    """Bytes as they stand in Bedrock's JSON."""
    return base64.b64encode(data).decode()


__all__ = [
    "KEY_ID",
    "MODEL",
    "REGION",
    "REQUEST_ID",
    "SECRET",
    "assumed",
    "blob",
    "closing",
    "frame",
    "refuse",
    "sent",
    "settings",
    "signature_fault",
    "streamed",
    "text_events",
    "unary",
    "usual",
    "write_keys",
]
