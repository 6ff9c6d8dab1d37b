from __future__ import annotations

from penstock.evals.nginx import config


def test_the_config_proxies_streams_unbuffered_over_kept_connections() -> None:
    text = config(port=8091, upstream=8090)
    assert "listen 127.0.0.1:8091 " in text
    assert "server 127.0.0.1:8090;" in text
    assert "worker_processes 1;" in text
    assert "proxy_buffering off;" in text
    assert 'proxy_http_version 1.1; proxy_set_header Connection "";' in text
    assert text.count("{") == text.count("}")
