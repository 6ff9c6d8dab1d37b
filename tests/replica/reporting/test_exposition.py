"""The replica's own figures as text that Prometheus reads."""

from __future__ import annotations

from penstock.replica.microserving.values import MicroServingFigures
from penstock.replica.reporting.exposition import Memory, memory, text
from penstock.v1 import inference_pb2
from tests.architecture.metrics_reference import replica_metrics

_LOAD = inference_pb2.Load(
    state=inference_pb2.REPLICA_STATE_READY,
    running=3,
    tokens=1 << 40,
    step_us=1500,
    calls=2,
    resumes=True,
)


def _lines(load: inference_pb2.Load = _LOAD, engine: str = "") -> list[str]:
    return text(load, Memory(replica=100, children=200), engine).splitlines()


def test_every_figure_has_its_help_and_its_type_before_it() -> None:
    lines = _lines()
    for at, line in enumerate(lines):
        if not line.startswith("#"):
            continue
        _, what, name, _ = line.split(" ", 3)
        assert name.startswith("penstock_replica_")
        if what == "HELP":
            assert lines[at + 1].startswith(f"# TYPE {name} ")
        else:
            assert lines[at + 2 - 1].startswith(name)
            assert line.endswith(" counter") == name.endswith("_total")


def test_a_replica_tells_what_it_declares_and_nothing_else() -> None:
    told = text(_LOAD, Memory(1, 2), "", MicroServingFigures()).splitlines()
    declared = [f"# HELP {each.name} {each.help}" for each in replica_metrics()]
    assert [line for line in told if line.startswith("# HELP")] == declared


def test_figures_are_told_whole() -> None:
    lines = _lines()
    assert "penstock_replica_sequences_running 3" in lines
    assert f"penstock_replica_completion_tokens_total {1 << 40}" in lines
    assert "penstock_replica_step_seconds 0.0015" in lines
    assert "penstock_replica_resumes 1" in lines
    assert 'penstock_replica_state{state="ready"} 1' in lines
    assert 'penstock_replica_state{state="draining"} 0' in lines
    assert 'penstock_replica_resident_memory_bytes{process="children"} 200' in lines


def test_the_engines_own_text_comes_last() -> None:
    assert _lines(engine="vllm:x 1\n")[-1] == "vllm:x 1"


def test_this_process_holds_memory() -> None:
    assert memory().replica > 1 << 20
