"""When certificates end."""

from __future__ import annotations

from pathlib import Path

from penstock.control.metrics.certificates import certificate_ends
from penstock.control.metrics.head import HeadFacts, HeadMetrics
from penstock.control.state.cluster import ClusterView
from tests.fakes.promtool import samples

TLS = Path(__file__).parents[2] / "fakes" / "tls"


def test_each_certificate_tells_when_it_ends_and_one_that_cannot_be_read_ended_long_ago(
    tmp_path: Path,
) -> None:
    (tmp_path / "broken.pem").write_text("nothing")
    files = {
        "head": TLS / "server.pem",
        "gateway": tmp_path / "broken.pem",
        "gone": tmp_path / "gone.pem",
        "none": None,
    }
    ends = certificate_ends(files)
    assert ends == {"head": ends["head"], "gateway": 0, "gone": 0}
    assert ends["head"] > 4e9, "the tests' own is good for a hundred years"
    facts = HeadFacts(ClusterView, int, dict, int, certificate_ends=lambda: ends)
    found = samples(HeadMetrics(facts).page())
    assert found['penstock_head_certificate_ends_seconds{of="head"}'] == ends["head"]


def test_a_file_that_is_replaced_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "server.pem"
    file.write_text("not yet")
    assert certificate_ends({"head": file}) == {"head": 0}
    file.write_bytes((TLS / "server.pem").read_bytes())
    assert certificate_ends({"head": file})["head"] > 4e9
