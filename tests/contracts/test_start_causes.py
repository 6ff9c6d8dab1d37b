"""Why an engine does not start, from its own words to the operator's: each known cause is told with
its figure and what would help, whole, wherever an operator looks."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.control.admin.rollout.models import DeploymentModel, ReplicaModel
from penstock.control.cli.fleet.status import Everything, to_parts
from penstock.control.cli.rollout.following import words
from penstock.control.managers.routing.traffic import DeploymentTraffic
from penstock.control.node_agent import replica_log
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import Replica, ReplicaState
from penstock.control.state.rollout.deployment import after_failure, changed
from penstock.control.state.rollout.failing import cause_of_failure
from penstock.control.state.tenancy.spend import Spend
from penstock.replica.logs import tell_end
from penstock.replica.ports import served_at
from penstock.replica.values import CannotLoad
from penstock.replica.vllm.start import causes, checks
from penstock.replica.vllm.start.arguments import Circumstances, command_line
from penstock.replica.vllm.start.known_causes import in_our_words
from penstock.replica.vllm.start.memory import judging
from penstock.replica.vllm.start.memory.sums import SPAWNED, Machine
from tests.control.cli.drawn import piped
from tests.fakes.control_values import MINI, NOON, SECOND, deployment, in_service, replica, spec

SERVED = in_service(deployment())
CHANGED = changed(SERVED, spec(model="next"), NOON)
PLACE = checks.ModelPlace("qwen", Path("/models/qwen"))
HUB = checks.ModelPlace("acme/qwen", None)
GIB = 1 << 30


def refused(act: Callable[[], object]) -> str:
    """What the replica itself says, before there is an engine."""
    with pytest.raises(CannotLoad) as caught:
        act()
    return str(caught.value)


def busy(_: str) -> None:
    raise RuntimeError("cannot listen on 127.0.0.1:7001")


FOUND_BY_THE_REPLICA = [
    (
        lambda: checks.find_model("/models/qwne"),
        "model /models/qwne: there is no directory /models/qwne; check the path",
    ),
    (
        lambda: command_line({"max_modle_len": "1"}, {}, Circumstances(cpu=True)),
        "engine setting max_modle_len: vLLM has no flag --max-modle-len; "
        "see `vllm serve --help=all` for those it has",
    ),
    (
        lambda: checks.check_device(found=False),
        "vLLM's CUDA build is installed and finds no GPU that it can use; see whether "
        "`nvidia-smi` lists one and says CUDA 13 or later, and that CUDA_VISIBLE_DEVICES does "
        "not hide it, or take the CPU build: PENSTOCK_VLLM_BUILD=cpu make serve",
    ),
    (
        lambda: checks.check_version("0.33.0", untested=False),
        "vLLM 0.33.0 is installed, this replica was tested with 0.32.x and reaches into it; "
        "install 0.32.x, or set the engine setting untested_vllm=true",
    ),
    (
        lambda: served_at("127.0.0.1:7001-7001", busy),
        "no port of 7001-7001 is free on 127.0.0.1: give the node agent more by --replica-ports "
        "(an update needs one more), or have fewer replicas here; "
        "cannot listen on 127.0.0.1:7001",
    ),
]

SEE = "See https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more details."
# What vLLM 0.32, its Transformers and torch say; where it was logged by the engine's process, with
# the exception's name before it.
SAID_BY_THE_ENGINE = [
    (
        PLACE,
        "ValueError: Free memory on device cuda:0 (3.2/79.11 GiB) on startup is less than desired "
        "GPU memory utilization (0.9, 71.2 GiB). Decrease GPU memory utilization or reduce GPU "
        "memory used by other processes.",
        "model qwen: its GPU has 3.2 of 79.11 GiB free, gpu_memory_utilization=0.9 asks for 71.2: "
        "lower that engine setting, or end what else uses the GPU",
    ),
    (
        PLACE,
        "ValueError: To serve at least one request with the model's max seq len (131072), (16.0 "
        "GiB KV cache is needed, which is larger than the available KV cache memory (2.5 GiB). "
        "Based on the available memory, the estimated maximum model length is 20480. Try "
        "increasing `gpu_memory_utilization` (which also controls CPU memory on the CPU backend) "
        f"or decreasing `max_model_len` when initializing the engine. {SEE}",
        "model qwen: max_model_len=131072 needs 16.0 GiB of KV cache, there are 2.5: set "
        "max_model_len=20480, or raise gpu_memory_utilization (on a CPU cpu_kvcache_gib)",
    ),
    (
        PLACE,
        "ValueError: To serve at least one request with the model's max seq len (131072), (16.0 "
        "GiB KV cache is needed, which is larger than the available KV cache memory (0.01 GiB). "
        f"Try increasing `gpu_memory_utilization` when initializing the engine. {SEE}",
        "model qwen: max_model_len=131072 needs 16.0 GiB of KV cache, there are 0.01: lower "
        "max_model_len, or raise gpu_memory_utilization (on a CPU cpu_kvcache_gib)",
    ),
    (
        PLACE,
        "ValueError: No available memory for the cache blocks. Try increasing "
        f"`gpu_memory_utilization` when initializing the engine. {SEE}",
        "model qwen: its weights leave no memory for a KV cache: raise gpu_memory_utilization, or "
        "take a smaller or quantized model, or spread it by tensor_parallel_size",
    ),
    (
        PLACE,
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
        "capacity of 79.11 GiB of which 1.20 GiB is free. Including non-PyTorch memory, this "
        "process has 77.90 GiB memory in use.",
        "model qwen: its GPU is out of memory, 2.00 GiB more were wanted, 1.20 GiB of 79.11 GiB "
        "are free: lower gpu_memory_utilization or max_num_seqs, take a smaller or quantized "
        "model, or spread it by tensor_parallel_size",
    ),
    (
        PLACE,
        "World size (4) is larger than the number of available GPUs (1) in this node. If this is "
        "intentional and you are using:\n- ray, set '--distributed-executor-backend ray'.",
        "model qwen: its settings ask for 4 GPUs, it was given 1: lower tensor_parallel_size or "
        "pipeline_parallel_size, or run it on a larger node",
    ),
    (
        PLACE,
        "RuntimeError: No CUDA GPUs are available",
        "model qwen: CUDA finds no GPU that it can use: see whether `nvidia-smi` lists one and "
        "says CUDA 13 or later, and that CUDA_VISIBLE_DEVICES does not hide it",
    ),
    (
        PLACE,
        "torch.distributed.DistNetworkError: The server socket has failed to listen on any local "
        "network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: "
        "address already in use",
        "model qwen: a port that vLLM listens on is in use (29500): end the process that has it, "
        "or set master_port to a free one",
    ),
    (
        PLACE,
        "1 validation error for ModelConfig\n  Value error, Model architectures "
        "['Qwen9ForCausalLM'] are not supported for now. Supported architectures: "
        "dict_keys(['AfmoeForCausalLM']) [type=value_error, input_value=ArgsKwargs((), {...})]",
        "model qwen: its architecture ['Qwen9ForCausalLM'] is not supported by this vLLM: it may "
        "need a newer one, which comes with a newer Penstock",
    ),
    (
        PLACE,
        "The checkpoint you are trying to load has model type `qwen9` but Transformers does not "
        "recognize this architecture. This could be because of an issue with the checkpoint.",
        "model qwen: its model type qwen9 is not known to this vLLM's Transformers: it may need a "
        "newer vLLM, which comes with a newer Penstock",
    ),
    (
        PLACE,
        "1 validation error for ModelConfig\n  Value error, User-specified max_model_len (9000) is "
        "greater than the derived max_model_len (max_position_embeddings=4096 or "
        "model_max_length=None in model's config.json). [type=value_error]",
        "model qwen: max_model_len=9000 is more than the model's own 4096: set 4096 at most",
    ),
    (
        HUB,
        "You are trying to access a gated repo.\nMake sure to have access to it at "
        "https://huggingface.co/acme/qwen.\n401 Client Error. (Request ID: Root=1-68)",
        "model acme/qwen: there is no such directory, and from the model hub it could not be had: "
        "access to it is gated: ask for it on its page at the hub, and start the node agent with "
        "HF_TOKEN set to a token that has access. To serve a model from disk, give its "
        "directory's path",
    ),
    (
        HUB,
        "acme/qwen is not a local folder and is not a valid model identifier listed on "
        "'https://huggingface.co/models'\nIf this is a private repository, make sure to pass a "
        "token having permission to this repo",
        "model acme/qwen: there is no such directory, and from the model hub it could not be had: "
        "the hub has none of this name, or keeps it private: check the name, or start the node "
        "agent with HF_TOKEN set to a token that has access. To serve a model from disk, give its "
        "directory's path",
    ),
    (
        HUB,
        "We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them "
        "in the cached files.\nCheck your internet connection or see how to run the library in "
        "offline mode",
        "model acme/qwen: there is no such directory, and from the model hub it could not be had: "
        "https://huggingface.co cannot be reached from this node. To serve a model from disk, "
        "give its directory's path",
    ),
    (
        PLACE,
        "ValueError: something that nobody has seen before",
        "model qwen: ValueError: something that nobody has seen before",
    ),
]


@pytest.mark.parametrize(("act", "sentence"), FOUND_BY_THE_REPLICA)
def test_what_the_replica_finds_itself_reaches_the_operator(
    act: Callable[[], object],
    sentence: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    reaches_operators(refused(act), sentence, tmp_path, capfd)


@pytest.mark.parametrize(("place", "said", "sentence"), SAID_BY_THE_ENGINE)
def test_what_the_engine_says_reaches_the_operator_in_words_that_help(
    place: checks.ModelPlace,
    said: str,
    sentence: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    told = place.failure(in_our_words(causes.of_exception(ValueError(said))))
    reaches_operators(told, sentence, tmp_path, capfd)


# What checks settings wraps what it says in lines of its own, and runs in the replica's process.
LOGGED = [each for each in SAID_BY_THE_ENGINE if "Value error, " not in each[1]]


@pytest.mark.parametrize(("place", "said", "sentence"), LOGGED)
def test_what_the_engines_process_only_logs_reaches_the_operator_too(
    place: checks.ModelPlace,
    said: str,
    sentence: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    trace = f'Traceback (most recent call last):\n  File "a.py", line 1, in f\n{said}'
    log = tmp_path / "errors.jsonl"
    log.write_text(json.dumps({"message": "failed", "exc_info": trace}))
    told = place.failure(in_our_words(causes.logged_cause(log)))
    reaches_operators(told, sentence, tmp_path, capfd)


def test_too_little_memory_for_a_cpu_engine_is_told_with_the_figures(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with (tmp_path / "model.safetensors").open("wb") as weights:
        weights.truncate(3 * GIB)
    (tmp_path / "config.json").write_text("{}")
    place = checks.ModelPlace("qwen", tmp_path)
    order, machine = judging.Order({"cpu_kvcache_gib": "2"}), Machine(free=4 * GIB)
    told = refused(lambda: judging.check(place, order, machine))
    taken = f"{3 + 2 + SPAWNED / GIB:.2f}"
    sentence = (
        f"model qwen: it needs about {taken} GiB of memory (weights 3.00, KV cache 2.00, processes "
        f"{SPAWNED / GIB:.2f}), 4.00 GiB are free; take another node, or a model that is smaller "
        "or quantised"
    )
    reaches_operators(told, sentence, tmp_path, capfd)


def reaches_operators(
    told: str, sentence: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """From the replica's last line to its status, the rollout's, and what `penstock` prints."""
    tell_end(told)
    log = folder / "r.log"
    log.write_text(capfd.readouterr().err)
    failed = made_by_next(replica_log.last_error(log))
    view = ClusterView().with_deployment(CHANGED).with_replica(failed)
    assert sentence in ReplicaModel.of(view, failed).last_error
    cause = cause_of_failure(view, CHANGED, NOON, SECOND)
    assert cause is not None
    back = view.with_deployment(after_failure(CHANGED, cause, NOON))
    known = back.deployments[MINI]
    shown = DeploymentModel.of(back, known, DeploymentTraffic(), Spend())
    assert shown.status.rollout is not None
    assert sentence in shown.status.rollout.cause
    assert sentence in words(shown)
    assert "`penstock logs new` shows its log" in words(shown)
    everything = Everything([shown], [ReplicaModel.of(back, failed)], [], [])
    assert sentence in piped(*to_parts(everything))


def made_by_next(error: str) -> Replica:
    """A replica of the changed template that its agent gave up."""
    one = replica("new", ReplicaState.FAILED, digest=CHANGED.template_digest)
    said = replace(one.status, last_error=error)
    return replace(one, generation=CHANGED.generation, status=said)
