// What Python's answers wrote in one turn of its loop, read from its tuples. Part of the module:
// needs the GIL, and nothing of the network.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <vector>

#include "python_handler.h"

namespace penstock::replica {

// Reads `list`, whose items have to outlive `batch`: of each its call's key, and then either a
// chunk's body, events, groups and tokens, or a serialised CallEvent. An item that is not as it
// should be is read as the failure of its call; returns the keys of these.
std::vector<uint64_t> read_writes(const pybind11::list& list, std::vector<Written>* batch);

}  // namespace penstock::replica
