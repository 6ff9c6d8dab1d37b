"""`penstock apply`, `diff`, `export` and `schema`, against a real admin API."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from penstock.control import spec_files
from penstock.control.errors import InvalidInput
from tests.control.cli.conftest import AskedHead

FILE = """\
penstock: v1
kind: deployment
name: chat
engine: simulated
model: m
replicas: 0
labels: {team: search}
---
penstock: v1
kind: tenant
id: acme
max_streams: 5
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of two documents."""
    path = tmp_path / "penstock.yaml"
    path.write_text(FILE)
    return path


def test_a_file_is_made_and_is_then_the_same(asked_head: AskedHead, file: Path) -> None:
    dry = asked_head.run("apply", "-f", str(file), "--dry-run")
    assert dry.stdout.splitlines()[0] == "deployment chat would be created"
    assert asked_head.run("diff", "-f", str(file)).exit_code == 1
    made = asked_head.run("apply", "-f", str(file), "--reason", "a start")
    assert made.exit_code == 0, made.stderr
    assert made.stdout.splitlines() == [
        "deployment chat created",
        "tenant acme created",
        "2 created, 0 changed, 0 deleted, 0 the same",
    ]
    same = asked_head.run("diff", "-f", str(file))
    assert (same.exit_code, same.stdout) == (0, "")
    history = json.loads(asked_head.run("rollout", "history", "chat", "--json").stdout)
    assert history[0]["reason"] == "a start"


def test_a_directory_and_stdin_are_files_too(asked_head: AskedHead, file: Path) -> None:
    (file.parent / "notes.txt").write_text("no: document")
    piped = asked_head.run("apply", "-f", "-", input=FILE)
    assert piped.exit_code == 0, piped.stderr
    assert asked_head.run("diff", "-f", str(file.parent)).exit_code == 0


def test_whoever_hurries_has_streams_handed_over_at_once(asked_head: AskedHead, file: Path) -> None:
    asked_head.run("apply", "-f", str(file))
    file.write_text(FILE.replace("replicas: 0", "replicas: 1"))
    asked_head.run("apply", "-f", str(file), "--hand-over")
    assert asked_head.admin.cluster.view().deployment("chat").hand_over


def test_what_is_under_way_is_hurried_by_a_file_that_says_nothing_new(
    asked_head: AskedHead, file: Path
) -> None:
    asked_head.run("apply", "-f", str(file))
    before = asked_head.admin.cluster.view().deployment("chat")
    asked_head.run("apply", "-f", str(file))
    assert not asked_head.admin.cluster.view().deployment("chat").hand_over
    asked_head.run("apply", "-f", str(file), "--hand-over")
    after = asked_head.admin.cluster.view().deployment("chat")
    assert (after.hand_over, after.generation) == (True, before.generation)


def test_a_change_is_told_field_by_field(asked_head: AskedHead, file: Path) -> None:
    asked_head.run("apply", "-f", str(file))
    file.write_text(FILE.replace("replicas: 0", "max_queued: 3").replace("search", "chat"))
    told = asked_head.run("diff", "-f", str(file))
    assert told.exit_code == 1
    first, second, *_ = told.stdout.splitlines()
    assert first == (
        "deployment chat would be changed: replicas 0 -> 1, max_queued 100 -> 3,"
        " labels.team search -> chat"
    )
    assert "no node is ready" in second


def test_pruning_takes_away_what_the_file_says_no_longer(asked_head: AskedHead, file: Path) -> None:
    asked_head.run("apply", "-f", str(file))
    file.write_text(FILE.partition("---")[0])
    assert asked_head.run("diff", "-f", str(file)).exit_code == 0
    told = asked_head.run("apply", "-f", str(file), "--prune")
    assert told.stdout.splitlines()[0] == "tenant acme deleted"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (FILE.replace("replicas", "replicsa"), ":6: replicsa: no such field; near to it: replicas"),
        (FILE.replace("replicas: 0", "replicas: -1"), ":6: replicas: Input should be greater"),
        (FILE.replace("{team: search}", "{\n  team: 3}"), ":8: labels.team: Input should be a"),
        (FILE.replace("kind: tenant", "kind: tennant"), ":10: kind: no kind 'tennant'; near to it"),
        (FILE.replace("max_streams: 5", "max_streams: 5\nid: b"), ":13: id is said twice"),
        ("a: [", ":2: "),
        ("just words", ":1: a document is fields with values"),
        ("", "no document in "),
    ],
)
def test_what_is_wrong_is_told_with_file_and_line_and_nothing_is_done(
    asked_head: AskedHead, file: Path, text: str, words: str
) -> None:
    file.write_text(text)
    told = asked_head.run("apply", "-f", str(file))
    assert told.exit_code == 1
    assert words in told.stderr, told.stderr
    assert not asked_head.admin.cluster.view().deployments
    assert asked_head.run("diff", "-f", str(file)).exit_code == 2


def test_several_faults_are_a_line_each(asked_head: AskedHead, file: Path) -> None:
    file.write_text(FILE.replace("replicas", "replicsa").replace("max_streams", "streams"))
    told = asked_head.run("apply", "-f", str(file))
    first, *lines = told.stderr.splitlines()
    assert first == "penstock apply: error: nothing is done:"
    assert [line.strip().removeprefix(str(file))[:4] for line in lines] == [":6: ", ":12:"]


def test_what_somebody_else_has_set_is_overwritten_by_force(
    asked_head: AskedHead, file: Path
) -> None:
    file.write_text(FILE.replace("replicas: 0", "replicas: 0\nmax_queued: 3"))
    asked_head.run("apply", "-f", str(file))
    asked_head.run("set", "chat", "max_queued=4")
    told = asked_head.run("diff", "-f", str(file))
    assert "max_queued 4 -> 3 (admin has set it: by force alone)" in told.stdout
    told = asked_head.run("apply", "-f", str(file))
    assert told.exit_code == 1
    assert f"{file}:7: max_queued: admin has set it to 4, here it is 3" in told.stderr
    assert asked_head.run("apply", "-f", str(file), "--force").exit_code == 0
    assert asked_head.run("diff", "-f", str(file)).exit_code == 0


def test_what_is_exported_changes_nothing_and_is_as_the_schema_says(
    asked_head: AskedHead, file: Path, tmp_path: Path
) -> None:
    asked_head.run("apply", "-f", str(file))
    asked_head.run("set", "chat", "update.max_surge=2", "degrade=trim,reject", "kv_pressure=0.9")
    exported = tmp_path / "now.yaml"
    exported.write_text(asked_head.run("export").stdout)
    assert exported.read_text().startswith("# yaml-language-server: $schema=penstock.schema.json\n")
    same = asked_head.run("diff", "-f", str(exported))
    assert (same.exit_code, same.stdout, same.stderr) == (0, "", "")
    schema = json.loads(asked_head.run("schema").stdout)
    check = jsonschema.Draft7Validator(schema)
    documents = [each.said for each in spec_files.read([str(exported), str(file)])]
    assert len(documents) == 4
    for each in documents:
        assert not list(check.iter_errors(each)), each
    for wrong in ({"replicas": -1}, {"replicsa": 1}, {"kind": "tenant"}, {"penstock": "v2"}):
        assert list(check.iter_errors({**documents[0], **wrong})), wrong


def test_waiting_follows_what_was_changed(asked_head: AskedHead, file: Path) -> None:
    told = asked_head.run("apply", "-f", str(file), "--wait")
    assert told.exit_code == 0, told.stderr
    assert "chat: revision 1 serves, 0 replicas ready" in told.stderr


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"), ("on", "on"), ("1:30", "1:30"), ("0777", "0777"), ("1_000", "1_000"),
        ("2026-01-01", "2026-01-01"), ("true", True), ("12", 12), ("-0.5", -0.5), ("1e3", 1000.0),
        ("", None), ("~", None), ("'12'", "12"), ("1.2.3", "1.2.3"),
    ],
)  # fmt: skip
def test_scalars_are_what_json_would_have(text: str, value: object) -> None:
    (document,) = spec_files.parsed(f"a: {text}", "x")
    assert document.said["a"] == value
    assert type(document.said["a"]) is type(value)


def test_what_is_written_is_read_as_it_was() -> None:
    said = {"a": "yes", "b": "1:30", "c": {"d": [1, None, "2026-01-01", "0777"]}, "e": "ä: #\n"}
    assert [each.said for each in spec_files.parsed(spec_files.written([said, said]), "x")] == [
        said,
        said,
    ]


def test_anchors_are_taken_and_endless_ones_are_not() -> None:
    merged, *_ = spec_files.parsed("a: &x {b: 1}\nc:\n  <<: *x\n  d: 2\n", "x")
    assert merged.said["c"] == {"b": 1, "d": 2}
    with pytest.raises(InvalidInput):
        list(spec_files.parsed("a: &x\n  b: *x\n", "x"))


def test_the_file_of_the_docs_is_taken_whole(asked_head: AskedHead, file: Path) -> None:
    page = Path(__file__).parents[3] / "docs" / "operate" / "files.md"
    file.write_text(page.read_text().partition("```yaml\n")[2].partition("```")[0])
    told = asked_head.run("apply", "-f", str(file), "--dry-run")
    assert told.exit_code == 0, told.stderr
    assert not asked_head.admin.cluster.view().adapters.versions
    told = asked_head.run("apply", "-f", str(file))
    assert told.stdout.splitlines()[-1] == "6 created, 0 changed, 0 deleted, 1 the same"
    aliases = asked_head.admin.cluster.view().adapters.aliases
    assert str(aliases["chat:pirate"].target) == "pirate@1"
    exported = asked_head.run("export").stdout
    assert asked_head.run("diff", "-f", "-", input=exported).exit_code == 0
    assert asked_head.run("apply", "-f", str(file)).stdout.splitlines() == [
        "0 created, 0 changed, 0 deleted, 7 the same"
    ]
    file.write_text(file.read_text().replace("penstock-mini/pirate", "penstock-mini/json"))
    told = asked_head.run("apply", "-f", str(file))
    assert "source of pirate@1 is 'penstock-mini/pirate', not 'penstock-mini/json'" in told.stderr
