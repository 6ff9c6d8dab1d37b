"""Documents as their authors write them: which kinds there are, and what each may say. Pure.

A document is the body that the admin API takes for its kind, beside two words: `penstock: v1` and
the kind. What is in it is read with what else there is of the object (`kinds.py`).
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, Field, ValidationError

from penstock.adapters.adapter import AdapterRef, BadAdapterRef
from penstock.control.admin.adapters.alias_models import AliasSpecModel
from penstock.control.admin.adapters.models import NewAdapterModel
from penstock.control.admin.canary.spec_models import CanarySpecModel
from penstock.control.admin.fields import Text
from penstock.control.admin.refusals import refusal
from penstock.control.admin.rollout.deployment_settings import GROUPS
from penstock.control.admin.rollout.models import NewDeployment
from penstock.control.admin.shadow.models import ShadowSpecModel
from penstock.control.admin.tenancy.tenant_models import AccessModel, NewTenant
from penstock.control.errors import BadDocuments, Fault
from penstock.control.state.applied import Fields, flattened, unflattened
from penstock.control.state.applying import Refusals, Said

VERSION: Final = "v1"
WORD: Final = "penstock"
"""Under which a document says its version."""


class AliasDocument(AliasSpecModel):
    """An alias of a deployment, and what it names."""

    deployment: Text = Field(examples=["chat"])
    alias: Text = Field(examples=["pirate"])


class Shape(NamedTuple):
    """What a kind of document looks like."""

    model: type[BaseModel]
    key: tuple[str, ...]  # fields that name the object
    groups: tuple[str, ...] = ()  # objects whose fields count one by one
    between: str = ""  # the parts of its name

    def name_of(self, document: Fields) -> str:
        """The name of the object."""
        return self.between.join(str(document[each]) for each in self.key)

    def key_of(self, name: str) -> dict[str, str]:
        """The inverse of `name_of`."""
        parts = name.split(self.between) if self.between else [name]
        return dict(zip(self.key, parts, strict=False))


SHAPES: Final[Mapping[str, Shape]] = {
    "deployment": Shape(NewDeployment, ("name",), ("engine_args", "labels", *sorted(GROUPS))),
    "tenant": Shape(NewTenant, ("id",)),
    "adapter": Shape(NewAdapterModel, ("name", "version"), between="@"),
    "alias": Shape(AliasDocument, ("deployment", "alias"), between=":"),
    "shadow": Shape(ShadowSpecModel, ("name",)),
    "canary": Shape(CanarySpecModel, ("name",), ("guards",)),
    "access": Shape(AccessModel, ()),
}
"""In the order in which they are made: what comes later may name what comes before."""


def read(documents: Sequence[Fields]) -> list[Said]:
    """What they say, as far as each tells by itself. Raises `BadDocuments`."""
    found: list[Said] = []
    faults: list[Fault] = []
    first: dict[tuple[str, str], int] = {}
    for index, document in enumerate(documents):
        wrong = [Fault(index, path, text) for path, text in _faults(document)]
        faults += wrong
        if wrong:
            continue
        said = _said(index, document)
        before = first.setdefault((said.kind, said.name), index)
        if before != index:
            what = f"{said.kind} {said.name}".rstrip()
            faults.append(Fault(index, (), f"{what} is in document {before + 1}, too: keep one"))
        found.append(said)
    if faults:
        raise BadDocuments(faults)
    return found


def written(kind: str, name: str, fields: Fields) -> dict[str, Any]:
    """The document that says these fields of an object."""
    shape = SHAPES[kind]
    said = unflattened(fields, shape.groups)
    if kind == "alias" and isinstance(said.get("target"), dict):
        said["split"] = said.pop("target")
    return {WORD: VERSION, "kind": kind, **shape.key_of(name), **said}


def validated(model: type[BaseModel], fields: Fields, groups: Sequence[str] = ()) -> Any:
    """The model of these fields. Raises `Refusals`."""
    try:
        return model.model_validate(unflattened(fields, groups))
    except ValidationError as error:
        raise Refusals(tuple(_told(model, each) for each in error.errors())) from None


def near(name: str, names: Iterable[str]) -> str:
    """What somebody who wrote this may have meant."""
    known = sorted(names)
    found = difflib.get_close_matches(name, known, n=2, cutoff=0.5)
    return f"near to it: {', '.join(found)}" if found else f"there are {', '.join(known)}"


def _faults(document: Fields) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """What is wrong with one, whatever else there is."""
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        yield (), "only text that UTF-8 can say: no half of a surrogate pair"
        return
    version, kind = document.get(WORD), document.get("kind")
    if version != VERSION:
        text = f"this version of Penstock reads documents that say `{WORD}: {VERSION}`"
        yield (WORD,) if WORD in document else (), f"{text}, not {version!r}" if version else text
    if not isinstance(kind, str) or kind not in SHAPES:
        wrong = f"no kind {kind!r}; {near(str(kind), SHAPES)}" if kind else "say which kind it is"
        yield ("kind",) if kind else (), wrong
        return
    shape = SHAPES[kind]
    for name in document:
        if name not in (*shape.model.model_fields, WORD, "kind"):
            yield (name,), f"no such field; {near(name, shape.model.model_fields)}"
    for name in shape.key:
        if not isinstance(document.get(name), str | int) or not str(document[name]):
            yield (name,) if name in document else (), f"say {name}, by which it is known"
    if kind == "adapter":
        try:
            AdapterRef.parse(shape.name_of({each: document.get(each, "") for each in shape.key}))
        except BadAdapterRef as error:
            yield ("name",), str(error)
    if kind == "alias" and {"target", "split"} <= set(document):
        yield ("split",), "say either target or split"


def _said(index: int, document: Fields) -> Said:
    kind = document["kind"]
    shape = SHAPES[kind]
    own = {k: v for k, v in document.items() if k not in (*shape.key, WORD, "kind")}
    if kind == "alias" and "split" in own:
        own["target"] = own.pop("split")  # one field, said in two ways
    return Said(index, kind, shape.name_of(document) or kind, flattened(own, shape.groups))


def _told(model: type[BaseModel], error: Any) -> tuple[tuple[str | int, ...], str]:
    path = tuple(part for part in error["loc"] if "[" not in str(part))
    if error["type"] != "extra_forbidden":
        return path, refusal(error)
    inside: Any = model
    for part in path[:-1]:
        field = getattr(inside, "model_fields", {}).get(part)
        inside = field.annotation if field else None
    return path, f"no such field; {near(str(path[-1]), getattr(inside, 'model_fields', ()))}"
