"""The engine that a replica's settings name, where that is a provider's.

Each provider's library is loaded where it is the one.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

from penstock.replica.providers.canned import Canned, read_text
from penstock.replica.providers.hosts import Hosts
from penstock.replica.providers.provider_engine import ProviderEngine
from penstock.replica.providers.reachability import check_proxy
from penstock.replica.providers.secrets import Secrets
from penstock.replica.providers.settings import Arguments, Common, read_common
from penstock.replica.providers.values import Provider
from penstock.replica.settings import Settings
from penstock.replica.values import CannotLoad


def make_provider_engine(settings: Settings) -> ProviderEngine:
    """Raises `CannotLoad` that names what is wrong."""
    if settings.adapters or settings.max_adapters or settings.max_adapter_rank:
        raise CannotLoad(f"the {settings.engine} engine takes no adapters")
    arguments = Arguments(settings.engine, settings.engine_args)
    common = read_common(arguments)
    capacity = settings.max_ongoing or common.max_calls
    with _collector_off():
        provider = _provider(settings, arguments, common, capacity)
    if provider.place is not None:
        check_proxy(provider.place, Hosts(settings.provider_hosts))
    return ProviderEngine(provider, settings.model, common, settings.engine_args, capacity)


@contextlib.contextmanager
def _collector_off() -> Iterator[None]:
    """Libraries make a great many objects that stay: to look through them each time again takes a
    sixth of their loading."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _provider(settings: Settings, arguments: Arguments, common: Common, capacity: int) -> Provider:
    hosts = Hosts(settings.provider_hosts)
    if settings.engine == "openai":
        from penstock.replica.providers.openai_provider import OpenAIProvider, read_openai

        secrets = Secrets(settings.secrets_dir, variables=settings.provider_variables)
        openai_settings = read_openai(arguments, secrets, hosts)
        arguments.check_all_known()
        return OpenAIProvider(openai_settings, settings.model, common)
    if settings.engine == "bedrock":
        from penstock.replica.providers.bedrock_provider import BedrockProvider

        bedrock = BedrockProvider(arguments, hosts, settings.model, common, capacity)
        arguments.check_all_known()
        return bedrock
    text = read_text(arguments)
    arguments.check_all_known()
    return Canned(text)
