"""The load client, the event source and nginx together, for windows of a quarter of a second."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.evals.bench_plan import (
    ALONE,
    ENDLESS_TOKENS,
    GATEWAY,
    NGINX,
    SOURCE,
    Beside,
    Scenario,
)
from penstock.evals.client import Answer, ask
from penstock.evals.errors import EvalError
from penstock.evals.load_bench import BenchOptions, LoadBench, ScenarioResult
from penstock.evals.main import app
from penstock.evals.native import Load, NativePrograms, Target
from penstock.evals.nginx import nginx
from penstock.evals.processes import free_ports
from penstock.evals.scenarios import named
from tests.evals.conftest import NATIVE_BUILD
from tests.evals.fake_serve import event

Measure = Callable[[Scenario, Answer], ScenarioResult]

pytestmark = pytest.mark.processes

STREAM = Answer(b"".join(event(f"word{n} ") for n in range(8)) + b"data: [DONE]\n\n", stream=True)
UNARY = Answer(b'{"choices": []}', stream=False)


def scenario(name: str, **changes: object) -> Scenario:
    found = named(name)
    assert found is not None
    return dataclasses.replace(found, peers=(NGINX, SOURCE), **changes)  # type: ignore[arg-type]


@pytest.fixture
def measure(programs: NativePrograms, nginx_program: str, tmp_path: Path) -> Measure:
    """Measures a scenario's peers with a recorded answer, without a gateway."""
    options = BenchOptions(("unused",), nginx_program, rounds=2, warmup_ms=100, window_ms=250)
    runner = LoadBench(programs, options, tmp_path, lambda line: None)

    def run(wanted: Scenario, recorded: Answer) -> ScenarioResult:
        return runner.measure(wanted, recorded, tmp_path, None)

    return run


def test_nginx_passes_the_recorded_bytes_on(
    programs: NativePrograms, nginx_program: str, tmp_path: Path
) -> None:
    with (
        programs.source(STREAM, 0, tmp_path) as source,
        nginx(nginx_program, source, tmp_path) as target,
    ):
        body = scenario("short-streamed").body("bench")
        assert ask(f"http://127.0.0.1:{target.port}", body) == STREAM


def test_endless_streams_keep_the_pace_on_every_target(measure: Measure) -> None:
    result = measure(scenario("paced-256", connections=40), STREAM)
    assert set(result.scores) == {NGINX, SOURCE}
    for score in result.scores.values():
        assert score.failures == 0
        assert score.events_per_s == pytest.approx(40 * 50, rel=0.3)
        assert score.gap_p50_ms == pytest.approx(20, rel=0.3)
        assert score.first_event_p50_ms is not None
        assert score.front_us_per_event is not None
        assert score.front_us_per_event > 0.1
    assert result.scores[NGINX].behind_us_per_event is not None


@pytest.mark.parametrize(("name", "recorded"), [("short-streamed", STREAM), ("short-unary", UNARY)])
def test_short_answers_are_counted_whole(measure: Measure, name: str, recorded: Answer) -> None:
    result = measure(scenario(name, connections=8), recorded)
    for score in result.scores.values():
        assert score.failures == 0
        assert score.answers_per_s is not None
        assert score.answers_per_s > 100
        assert score.front_us_per_answer is not None
        assert score.events_per_s == pytest.approx(score.answers_per_s * recorded.events, rel=0.05)


def test_a_number_of_requests_ends_the_window(measure: Measure) -> None:
    result = measure(scenario("first-event", requests=50), STREAM)
    for report in result.reports[SOURCE]:
        assert 50 <= report["answers"] <= 55


def test_a_recording_that_cannot_be_endless_is_refused(measure: Measure) -> None:
    short = Answer(b"data: {}\n\ndata: [DONE]\n\n", stream=True)
    with pytest.raises(EvalError, match="an endless answer needs three recorded events"):
        measure(scenario("paced-256"), short)


def test_a_load_beside_another_is_kept_up_and_counted(
    programs: NativePrograms, tmp_path: Path
) -> None:
    beside = Beside(connections=4, prompt_bytes=100_000, hold_ms=0)
    unary = scenario("short-unary", connections=2)
    wanted = dataclasses.replace(unary, beside=beside, peers=(), goals=())
    options = BenchOptions(("unused",), "unused", rounds=1, warmup_ms=0, window_ms=300)
    runner = LoadBench(programs, options, tmp_path, lambda line: None)
    with programs.source(STREAM, 0, tmp_path) as source:
        target = Target(GATEWAY, source.port, {})
        result = runner.measure(wanted, STREAM, tmp_path, target)
    assert list(result.scores) == [GATEWAY, ALONE]
    assert result.scores[GATEWAY].failures == 0
    assert result.scores[GATEWAY].beside_per_s
    assert result.scores[ALONE].beside_per_s is None


def test_a_load_beside_another_that_fails_is_told(programs: NativePrograms, tmp_path: Path) -> None:
    body = tmp_path / "body.json"
    body.write_text("{}")
    (closed,) = free_ports(1)
    target = Target(GATEWAY, closed, {})
    with (
        pytest.raises(EvalError, match=r"kept-load ended with 0: .*cannot connect"),
        programs.kept(target, 2, body, tmp_path),
    ):
        pytest.fail("it began")


def test_more_connections_than_open_files_are_refused(
    programs: NativePrograms, tmp_path: Path
) -> None:
    body = tmp_path / "body.json"
    body.write_text("{}")
    load = Load(connections=100_000_000, warmup_ms=0, window_ms=1)
    with pytest.raises(EvalError, match=r"100000000 needs as many open files, .* raise the hard"):
        programs.load(Target(GATEWAY, 1, {}), load, body)


def test_missing_programs_are_named_with_the_way_to_build_them(tmp_path: Path) -> None:
    with pytest.raises(EvalError, match=r"penstock-load is missing: build it: cmake"):
        NativePrograms(tmp_path)


def bench(out: Path, nginx_program: str, *words: str, serve: str) -> tuple[int, str]:
    """The command with short windows: its exit code, and all that it says."""
    short = ("--window", "0.2", "--warmup", "0.1", "--rounds", "1")
    places = ("--out", str(out), "--nginx", nginx_program, "--native", str(NATIVE_BUILD))
    done = CliRunner().invoke(app, ["bench", *short, *places, "--serve", serve, *words])
    return done.exit_code, done.output


def test_the_command_measures_what_serve_starts(tmp_path: Path, nginx_program: str) -> None:
    serve = f"{sys.executable} {Path(__file__).with_name('fake_serve.py')}"
    words = ("--scenario", "short-unary", "--scenario", "first-event")
    code, said = bench(tmp_path, nginx_program, *words, serve=serve)
    assert code == 0, said
    assert "| gateway | " in said
    assert "have a key and limits" in said
    assert "PASS: no answer fails" in said
    assert (tmp_path / "bench.md").read_text() in said
    data = json.loads((tmp_path / "bench.json").read_text())
    assert [each["name"] for each in data["scenarios"]] == ["short-unary", "first-event"]
    first = data["scenarios"][1]
    assert list(first["targets"]) == ["gateway", "nginx", "source"]
    assert first["events_per_answer"] == 16
    assert first["max_tokens"] != ENDLESS_TOKENS


def test_the_command_measures_without_a_key_when_it_is_told_to(
    tmp_path: Path, nginx_program: str
) -> None:
    serve = f"{sys.executable} {Path(__file__).with_name('fake_serve.py')}"
    words = ("--open", "--scenario", "short-unary")
    code, said = bench(tmp_path, nginx_program, *words, serve=serve)
    assert code == 0, said
    assert "No key, no limits, no scrapes." in said


def test_the_command_says_in_one_line_what_is_wrong(tmp_path: Path, nginx_program: str) -> None:
    code, said = bench(tmp_path, nginx_program, "--scenario", "nothing", serve="false")
    assert (code, said.count("\n")) == (1, 1)
    assert "there is no scenario 'nothing': choose among paced-256, " in said
    code, said = bench(tmp_path, nginx_program, "--scenario", "first-event", serve="false")
    assert code == 1
    assert "penstock evals: penstock ended with 1: (it printed nothing)" in said
