"""What becomes of a deployment by what was said of it, and what that changes. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from penstock.control.admin.rollout.deployment_settings import (
    GROUPS,
    program_over,
    with_roles_of,
)
from penstock.control.admin.rollout.models import ENGINES_OWN, SpecModel
from penstock.control.serving.options import LABELS, ServeOptions
from penstock.control.serving.settings_text import checked


def spec_with(
    spec: Mapping[str, Any], said: Mapping[str, Any], engine_args: Mapping[str, str]
) -> SpecModel:
    """The spec with what was said. Settings of the engine change one by one, an empty one is taken
    away; where the engine changes, those of the last one go. Raises `invalid-setting`."""
    if said.get("engine", spec.get("engine")) != spec.get("engine", said.get("engine")):
        spec = {key: value for key, value in spec.items() if key not in ENGINES_OWN}
    merged = {**spec, **said}
    for group in GROUPS:
        if isinstance(said.get(group), dict):
            merged[group] = {**spec.get(group, {}), **said[group]}
    if "program" in said:
        merged["program"] = program_over(spec.get("program"), said["program"])
    if "roles" in said and "replicas" not in said:
        merged = with_roles_of({"replicas": 1, **merged})
    known = merged.get("engine_args", {})
    if isinstance(known, dict):  # a file may say anything
        both = {**known, **engine_args}
        merged["engine_args"] = {key: value for key, value in both.items() if value != ""}
    return checked(SpecModel, merged)


def served(options: ServeOptions, stored: SpecModel | None) -> SpecModel:
    """What `penstock serve` asks for: what is stored, but for what was said to it. A deployment
    that was scaled to nothing is served again. Raises `invalid-setting`."""
    whole = {
        "engine": options.engine,
        "model": options.model,
        "max_adapters": options.adapter_slots,
        "max_adapter_rank": options.max_adapter_rank,
        "replicas": options.replicas,
    }
    if stored is None:
        # On one machine there may be no room for one more: then one makes room.
        new = {"labels": LABELS, "update": {"max_unavailable": 1}}
        return spec_with(new, {**whole, **options.settings}, options.engine_args)
    said = {key: whole[key] for key in options.said}
    anew = said.get("engine", stored.engine) != stored.engine
    asked = [each for each in options.adapters if not each.comes_along]
    if anew or ("max_adapters" not in said and len(asked) > stored.max_adapters):
        said["max_adapters"] = options.adapter_slots
    if not stored.replicas:
        said["replicas"] = options.replicas
    labels = {"labels": {**stored.labels, **LABELS}}
    return spec_with(
        stored.model_dump(), {**said, **options.settings, **labels}, options.engine_args
    )


def serving_as(options: ServeOptions, spec: SpecModel) -> ServeOptions:
    """The options, as far as they tell what is served, by the spec; without the adapters that
    come along with another model."""
    same = spec.model == options.model
    adapters = tuple(each for each in options.adapters if same or not each.comes_along)
    return replace(
        options,
        engine=spec.engine,
        model=spec.model,
        replicas=spec.replicas,
        adapters=adapters,
    )


def differences(old: SpecModel, new: SpecModel) -> Iterator[str]:
    """Each setting that the two have otherwise: "replicas 1 -> 2"."""
    before, after = _flat(old), _flat(new)
    for key in {**before, **after}:
        if before.get(key) != after.get(key):
            yield f"{key} {_shown(before.get(key))} -> {_shown(after.get(key))}"


def _flat(spec: SpecModel) -> dict[str, Any]:
    """A spec's values, those of mappings under names of their own: engine_args.max_model_len. The
    digest of a program tells of its text."""
    flat: dict[str, Any] = {}
    for key, value in spec.model_dump(exclude={"program": {"file"}}).items():
        if isinstance(value, dict):
            flat |= {f"{key}.{inner}": each for inner, each in value.items() if each != ""}
        else:
            flat[key] = value
    return flat


def _shown(value: Any) -> str:
    if value is None or value == []:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)
