"""Texts of several processes become one page that Prometheus takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from penstock.control.metrics.relabel import merged, parsed, rendered
from tests.fakes.promtool import complaints, samples

TEXT = """# HELP calls_total Calls that came.
# TYPE calls_total counter
calls_total{path="/a",status="2\\"00"} 3
calls_total 1.5 1700000000000
# HELP wait_seconds Waits.
# TYPE wait_seconds histogram
wait_seconds_bucket{le="1"} 1
wait_seconds_bucket{le="+Inf"} 2
wait_seconds_sum 3
wait_seconds_count 2
"""


def page(*texts: tuple[str, str]) -> bytes:
    """One page of these replicas' texts."""
    parts = [parsed(text, {"replica": replica}) for replica, text in texts]
    return rendered(merged(parts)).encode()


def test_every_sample_says_whose_it_is_and_every_family_stands_once() -> None:
    made = page(("r1", TEXT), ("r2", TEXT))
    found = samples(made)
    assert found['calls_total{path="/a",replica="r1",status="2"00"}'] == 3
    assert found['calls_total{replica="r2"}'] == 1.5
    assert found['wait_seconds_bucket{le="+Inf",replica="r2"}'] == 2
    assert made.count(b"# TYPE wait_seconds histogram") == made.count(b"# HELP calls_total") == 1
    assert complaints(made) == ""


def test_a_label_that_is_there_already_keeps_its_value_under_another_name() -> None:
    (found,) = samples(page(("r1", '# TYPE a gauge\na{replica="theirs"} 1\n')))
    assert found == 'a{exported_replica="theirs",replica="r1"}'


def test_a_family_that_another_has_with_another_type_is_left_out() -> None:
    made = page(("r1", "# TYPE a gauge\na 1\n"), ("r2", "# TYPE a counter\na 2\n"))
    assert samples(made) == {'a{replica="r1"}': 1}


def test_what_the_page_has_itself_nobody_else_tells() -> None:
    parts = [parsed("# TYPE mine gauge\nmine 7\nother 1\n", {})]
    assert set(merged(parts, taken={"mine"})) == {"other"}


@pytest.mark.parametrize(
    "line",
    ["a", "a b", "a{x=1} 2", 'a{x="1} 2', "a 1_000", "1a 2", "a 1 2 3", 'a{x="1"y="2"} 3', "a{"],
)
def test_a_line_that_is_no_sample_is_refused_with_its_number(line: str) -> None:
    with pytest.raises(ValueError, match="line 2"):
        parsed(f"fine 1\n{line}\n", {})


def test_comments_and_empty_lines_are_nothing() -> None:
    assert not parsed("# a word\n\n#\n# EOF\n", {})


names = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=8)


@given(st.dictionaries(names, st.floats(allow_nan=False), max_size=4), names)
def test_whatever_a_client_library_writes_comes_through(
    values: dict[str, float], owner: str
) -> None:
    registry = CollectorRegistry()
    gauge = Gauge("odd", owner, ["word"], registry=registry)
    for word, value in values.items():
        gauge.labels(word).set(value)
    Counter("many", owner, registry=registry).inc()
    Histogram("long_seconds", owner, registry=registry).observe(1)
    families = parsed(generate_latest(registry).decode(), {"owner": owner})
    lines = [line for family in families.values() for line in family.lines]
    before = generate_latest(registry).decode().split("\n")
    assert len(lines) == len([line for line in before if line and not line.startswith("#")])
    assert parsed(rendered(families), {}).keys() == families.keys()
