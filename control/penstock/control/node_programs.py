"""Composition of a node's router programs: where they run, and who starts them."""

from __future__ import annotations

from collections.abc import Callable

from penstock.control.data_dir import logs_path, program_texts_path, programs_path
from penstock.control.node_agent.program_life import ProgramHome, ProgramNeeds
from penstock.control.node_agent.program_texts import ProgramSource, ProgramTexts
from penstock.control.node_agent.programs import RouterPrograms
from penstock.control.outside.clock import SystemClock
from penstock.control.outside.processes import ProcessLauncher, cpu_seconds
from penstock.control.settings import NodeSettings


def router_programs(
    settings: NodeSettings, source: ProgramSource, changed: Callable[[], None]
) -> RouterPrograms:
    """Those beside this machine's gateway. `changed`: how one fares has."""
    home = ProgramHome(
        settings.programs_dir or programs_path(settings.data_dir),
        logs_path(settings.data_dir),
        settings.program_modules,
    )
    texts = ProgramTexts(program_texts_path(settings.data_dir), source)
    needs = ProgramNeeds(home, texts, ProcessLauncher(), SystemClock(), changed, cpu_seconds)
    return RouterPrograms(needs)
