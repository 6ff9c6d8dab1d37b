"""What an engine says when it does not start, in words that help whoever runs it: with its figures,
and with what to do. What is not known here is told as the engine says it.

The longest of them, with a model's name before it, fits where an operator looks first.
"""

from __future__ import annotations

import re
from typing import Final

_SMALLER: Final = "take a smaller or quantized model, or spread it by tensor_parallel_size"
_TOKEN: Final = "start the node agent with HF_TOKEN set to a token that has access"

# The first that fits counts; groups of a pattern stand in its words.
_KNOWN: Final = tuple(
    (re.compile(pattern, re.S | re.I), words)
    for pattern, words in (
        (
            r"Free memory on device \S+ \(([\d.]+)/([\d.]+) GiB\) on startup.*?"
            r"\(([\d.]+), ([\d.]+) GiB\)",
            "its GPU has {0} of {1} GiB free, gpu_memory_utilization={2} asks for {3}: lower that"
            " engine setting, or end what else uses the GPU",
        ),
        (
            r"max seq len \((\d+)\), \(([\d.]+) GiB KV cache is needed.*?memory \(([\d.]+) GiB\)"
            r".*?maximum model length is (\d+)",
            "max_model_len={0} needs {1} GiB of KV cache, there are {2}: set max_model_len={3}, or"
            " raise gpu_memory_utilization (on a CPU cpu_kvcache_gib)",
        ),
        (
            r"max seq len \((\d+)\), \(([\d.]+) GiB KV cache is needed.*?memory \(([\d.]+) GiB\)",
            "max_model_len={0} needs {1} GiB of KV cache, there are {2}: lower max_model_len, or"
            " raise gpu_memory_utilization (on a CPU cpu_kvcache_gib)",
        ),
        (
            r"No available memory for the cache blocks",
            "its weights leave no memory for a KV cache: raise gpu_memory_utilization, or "
            + _SMALLER,
        ),
        (
            r"CUDA out of memory\. Tried to allocate ([\d.]+ \wiB)\."
            r".*?capacity of ([\d.]+ \wiB) of which ([\d.]+ \wiB) is free",
            "its GPU is out of memory, {0} more were wanted, {2} of {1} are free: lower"
            " gpu_memory_utilization or max_num_seqs, " + _SMALLER,
        ),
        (
            r"CUDA out of memory",
            "its GPU is out of memory: lower gpu_memory_utilization or max_num_seqs, " + _SMALLER,
        ),
        (
            r"World size \((\d+)\) is larger than the number of available GPUs \((\d+)\)",
            "its settings ask for {0} GPUs, it was given {1}: lower tensor_parallel_size or"
            " pipeline_parallel_size, or run it on a larger node",
        ),
        (
            r"No CUDA GPUs are available|CUDA driver version is insufficient|CUDA unknown error"
            r"|no NVIDIA driver|NVIDIA driver on your system is too old|libcuda\S*: cannot open",
            "CUDA finds no GPU that it can use: see whether `nvidia-smi` lists one and says CUDA 13"
            " or later, and that CUDA_VISIBLE_DEVICES does not hide it",
        ),
        (
            r"(?:port: (\d+)\D.*?)?(?:EADDRINUSE|Address already in use)",
            "a port that vLLM listens on is in use ({0}): end the process that has it, or set"
            " master_port to a free one",
        ),
        (
            r"Model architectures (\[.*?\]) are not supported",
            "its architecture {0} is not supported by this vLLM: it may need a newer one, which"
            " comes with a newer Penstock",
        ),
        (
            r"model type `(\S+?)` but Transformers does not recognize",
            "its model type {0} is not known to this vLLM's Transformers: it may need a newer vLLM,"
            " which comes with a newer Penstock",
        ),
        (
            r"gated repo|Access to model \S+ is restricted",
            "access to it is gated: ask for it on its page at the hub, and " + _TOKEN,
        ),
        (
            r"is not a valid model identifier listed|Repository Not Found",
            "the hub has none of this name, or keeps it private: check the name, or " + _TOKEN,
        ),
        (
            r"couldn't connect to '(\S+)'",
            "{0} cannot be reached from this node",
        ),
        (
            r"max_model_len \((\d+)\) is greater than the derived max_model_len \(\w+=(\d+)",
            "max_model_len={0} is more than the model's own {1}: set {1} at most",
        ),
    )
)


def in_our_words(cause: str) -> str:
    """A cause as a person is told it; as it stands where nobody here knows it."""
    for pattern, words in _KNOWN:
        if found := pattern.search(cause):
            return words.format(*(group or "which is not said" for group in found.groups()))
    return cause
