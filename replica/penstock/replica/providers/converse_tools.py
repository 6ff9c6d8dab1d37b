"""Tools, the choice of them, and the form of the answer, as Converse has them. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from penstock.replica.providers import errors
from penstock.replica.providers.converse_blocks import check_name, marked
from penstock.replica.providers.requests import wrong_type

_ANY_INPUT: Final[dict[str, Any]] = {"type": "object", "properties": {}}

_LONGEST_EFFORT: Final = 16


def tool_config(body: dict[str, Any], messages: list[dict[str, Any]]) -> dict[str, Any]:
    """The tools and which to take; empty where there are none.

    Converse wants to be told of tools wherever the conversation has called some: those that the
    request does not describe are named as the conversation does. It has no word for taking none, so
    that tools are then left out, as far as the conversation called none.
    """
    tools = body.get("tools") or []
    if not isinstance(tools, list):
        raise wrong_type("tools", "a list", tools)
    specs = [spec for index, tool in enumerate(tools) for spec in _spec(tool, f"tools[{index}]")]
    choice = body.get("tool_choice")
    called = list(dict.fromkeys(_called(messages)))
    if choice == "none" or not specs:
        known = {spec["toolSpec"]["name"]: spec for spec in specs if "toolSpec" in spec}
        named = [known.get(name) or _named(name) for name in called]
        return {"tools": named} if named else {}
    config: dict[str, Any] = {"tools": specs}
    if choice is not None:
        config["toolChoice"] = _choice(choice)
    return config


def output_config(body: dict[str, Any]) -> dict[str, Any]:
    """The form that the answer is to have, and the effort; empty where nothing is said of them."""
    config: dict[str, Any] = {}
    effort = body.get("reasoning_effort")
    if effort is not None:
        if not isinstance(effort, str) or len(effort) > _LONGEST_EFFORT:
            raise wrong_type("reasoning_effort", "a short word", effort)
        config["effort"] = effort
    if schema := _schema(body.get("response_format")):
        config["textFormat"] = {"type": "json_schema", "structure": {"jsonSchema": schema}}
    return config


def _schema(form: object) -> dict[str, str]:
    kind = form.get("type") if isinstance(form, dict) else None
    if form is None or kind == "text":
        return {}
    if kind == "json_object":
        return {"schema": json.dumps({"type": "object"}), "name": "object"}
    given = form.get("json_schema") if isinstance(form, dict) else None
    if kind != "json_schema" or not isinstance(given, dict):
        raise wrong_type("response_format", "text, json_object or json_schema", form)
    if not isinstance(given.get("schema"), dict):
        raise wrong_type("response_format.json_schema.schema", "an object", given.get("schema"))
    told = {"schema": json.dumps(given["schema"])}
    for field in ("name", "description"):
        if isinstance(given.get(field), str) and given[field]:
            told[field] = given[field]
    return told


def _spec(tool: object, where: str) -> list[dict[str, Any]]:
    """A tool, and its mark for the cache. Raises `ProviderFailed`."""
    if not isinstance(tool, dict):
        raise wrong_type(where, "an object", tool)
    if (kind := tool.get("type", "function")) != "function":
        raise errors.unsupported_tool(f"{where}.type", kind)
    function = tool.get("function")
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise wrong_type(where, "a function with a name", tool)
    check_name(function["name"], f"{where}.function.name")
    parameters = function.get("parameters") or _ANY_INPUT
    if not isinstance(parameters, dict):
        raise wrong_type(f"{where}.function.parameters", "an object", parameters)
    spec: dict[str, Any] = {"name": function["name"], "inputSchema": {"json": parameters}}
    if isinstance(function.get("description"), str) and function["description"]:
        spec["description"] = function["description"]
    if isinstance(function.get("strict"), bool):
        spec["strict"] = function["strict"]
    return marked([{"toolSpec": spec}], {**function, **tool}, where)


def _choice(choice: object) -> dict[str, Any]:
    if choice in ("auto", "required"):
        return {"auto" if choice == "auto" else "any": {}}
    function = choice.get("function") if isinstance(choice, dict) else None
    if isinstance(function, dict) and isinstance(function.get("name"), str):
        check_name(function["name"], "tool_choice.function.name")
        return {"tool": {"name": function["name"]}}
    raise errors.unsupported("tool_choice", "it is auto, required, none or a function by its name")


def _called(messages: list[dict[str, Any]]) -> Iterator[str]:
    for message in messages:
        for block in message["content"]:
            if "toolUse" in block:
                yield block["toolUse"]["name"]


def _named(name: str) -> dict[str, Any]:
    return {"toolSpec": {"name": name, "inputSchema": {"json": _ANY_INPUT}}}
