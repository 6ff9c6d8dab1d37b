// What Python's answers wrote in one turn of its loop, read from its tuples. Part of the module:
// needs the GIL, and nothing of the network.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <vector>

#include "python_handler.h"

namespace penstock::replica {

// The second item of each tuple, after the call's key; as in calls/bridge.py.
enum class WriteKind : uint8_t {
  kChunk = 0,     // body, events, groups, tokens
  kHead = 1,      // status, content type, prompt tokens, cached tokens, queue wait in microseconds,
                  // backend's version, model's version, messages trimmed, tokens trimmed, model
  kFinished = 2,  // usage (4), timings (3), finish reasons, adapter, backend, its version, model's
                  // version, model, request id, trace id, provider's id of the request, first body
                  // bytes and end in microseconds
  kFailed = 3,    // status, type, code, message, param, fault, retry, retry after in ms, usage (4)
  kCancelled = 4,  // usage (4)
};

// Reads `list`, whose items have to outlive `batch`. An item that is not as it should be is read as
// the failure of its call; returns the keys of these.
std::vector<uint64_t> read_writes(const pybind11::list& list, std::vector<Written>* batch);

}  // namespace penstock::replica
