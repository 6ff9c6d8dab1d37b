"""vLLM in a process that other processes are forked of, before any engine of theirs is known.

What is done here depends on no model, and vLLM would do it in every process of every engine. What
the fork may then become is `cold_starts.py`.

Imports vLLM only inside functions.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Mapping
from importlib import util
from pathlib import Path
from typing import Any, Final

from penstock.replica.vllm import surface
from penstock.replica.vllm.start import checks, cold_starts, environment, imports
from penstock.replica.vllm.start.arguments import check_early
from penstock.replica.vllm.start.cold_starts import Imported
from penstock.replica.vllm.surface.of_pool import ON_THE_WAY
from penstock.replica.vllm.surface.values import Stage

_LATER: Final = (
    *ON_THE_WAY,
    "model_hosting_container_standards.sagemaker",
    "penstock.replica.vllm.serving.gauges",
)
_LATER_ON_CPU: Final = (
    "vllm.lora.punica_wrapper.punica_cpu",
    "vllm.v1.attention.backends.cpu_attn",
    "penstock.replica.vllm.start.cpu_cures",
)
"""What an engine's start imports on its way, of those that many models take. Never `worker.py`,
which has to be imported anew in each process."""


def variables() -> Mapping[str, str]:
    """What the environment has to have as the program starts.

    OpenMP's and BLAS's threads would be there before the fork, and not after it. The libraries in
    front are those that vLLM puts there for the processes that it spawns on a CPU.
    """
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    if not imports.has_cpu_build():
        return one
    return {**one, "LD_PRELOAD": environment.preloaded(_libraries())}


def prepare() -> Imported:
    """Imports all that engines need."""
    environment.prepare_pool()
    version = imports.version()
    checks.check_version(version, untested=False)
    imports.shared()
    for stage in (Stage.ENGINE, Stage.POOL):
        surface.check(stage)
    imports.app()
    imports.worker()
    later = (*_LATER, *_routers(), *(_LATER_ON_CPU if imports.has_cpu_build() else ()))
    with environment.root_logger_kept():
        for module in later:
            with contextlib.suppress(ImportError):  # of what not every engine asks for
                importlib.import_module(module)
    return Imported(version, _prepared_platform())


def why_cold(
    model: str, engine_args: Mapping[str, str], imported: Imported, *, allow_model_code: bool
) -> str:
    """Why a fork of this process cannot be such an engine; empty: it can. Raises `CannotLoad` where
    a process that is started would."""
    check_early(engine_args, allow_model_code=allow_model_code)
    checks.find_model(model)
    return cold_starts.why_cold(engine_args, imported, imports.version())


def is_untouched() -> bool:
    """Whether a fork may still begin with CUDA."""
    import torch

    return not torch.cuda.is_initialized()


def _routers() -> list[str]:
    """The modules of vLLM's routes, all of which the building of its app asks for."""
    package = importlib.import_module("vllm.entrypoints")
    root = Path(package.__path__[0])
    files = (file.with_suffix("").relative_to(root) for file in root.rglob("api_router.py"))
    return sorted(".".join([package.__name__, *file.parts]) for file in files)


def _prepared_platform() -> str:
    """What each process of an engine does that depends on no model; the name of the device."""
    from vllm.entrypoints.launchers.cli_args import make_arg_parser
    from vllm.platforms import current_platform
    from vllm.plugins import load_general_plugins
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    checks.check_device(found=not current_platform.is_unspecified())
    current_platform.import_kernels()
    current_platform.register_triton_kernel_overrides()
    # It looks through every module for what it has replaced already.
    type(current_platform).register_triton_kernel_overrides = classmethod(_nothing)
    load_general_plugins()
    make_arg_parser(FlexibleArgumentParser(prog="vllm"))  # which remembers what it has read
    return str(current_platform.device_type)


def _nothing(platform: Any) -> None:
    """Stands in for what has been done."""


def _libraries() -> list[Path]:
    """As `CpuPlatform.check_and_update_config` finds them."""
    found = []
    for package, patterns in _PRELOADED.items():
        spec = util.find_spec(package)
        folder = Path(spec.origin).parent if spec and spec.origin else Path()
        files = [file for pattern in patterns for file in sorted(folder.glob(pattern))]
        found += files[:1]
    return found


_PRELOADED: Final = {
    "vllm": ("libs/libtcmalloc_minimal*.so*", "libs/libtcmalloc.so*"),
    "torch": ("../torch.libs/libgomp*.so*", "lib/libgomp*.so*"),
}
