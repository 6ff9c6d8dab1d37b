#include "python_writes.h"

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace penstock::replica {
namespace {

namespace py = pybind11;

// Call key, body, events, groups, tokens.
constexpr Py_ssize_t kChunkItems = 5;
// Choice, token ids, why it finished, what stopped it.
constexpr Py_ssize_t kGroupItems = 4;

uint32_t number(PyObject* item) { return py::handle(item).cast<uint32_t>(); }

// Text that is not UTF-8 (half a surrogate pair out of a client's JSON) loses that character.
std::string text(PyObject* item) {
  if (!PyUnicode_Check(item)) throw py::type_error("a str is needed");
  Py_ssize_t size = 0;
  if (const char* data = PyUnicode_AsUTF8AndSize(item, &size)) {
    return {data, static_cast<size_t>(size)};
  }
  PyErr_Clear();
  const auto bytes =
      py::reinterpret_steal<py::bytes>(PyUnicode_AsEncodedString(item, "utf-8", "replace"));
  if (!bytes) throw py::error_already_set();
  return bytes;
}

void read_group(PyObject* group, v1::TokenGroup* read) {
  if (!PyTuple_Check(group) || PyTuple_GET_SIZE(group) != kGroupItems) {
    throw py::type_error("a group of tokens is needed");
  }
  PyObject* const ids = PyTuple_GET_ITEM(group, 1);
  if (!PyTuple_Check(ids)) throw py::type_error("a group's tokens have to be a tuple");
  read->set_choice(number(PyTuple_GET_ITEM(group, 0)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(ids); ++i) {
    read->add_token_ids(number(PyTuple_GET_ITEM(ids, i)));
  }
  // What is empty, as nearly always, would be given memory.
  if (auto why = text(PyTuple_GET_ITEM(group, 2)); !why.empty()) {
    read->set_finish_reason(std::move(why));
  }
  if (auto what = text(PyTuple_GET_ITEM(group, 3)); !what.empty()) {
    read->set_stop_reason(std::move(what));
  }
}

void read_groups(PyObject* groups, std::vector<v1::TokenGroup>* read) {
  if (!PyTuple_Check(groups)) throw py::type_error("groups have to be a tuple");
  const Py_ssize_t size = PyTuple_GET_SIZE(groups);
  read->reserve(static_cast<size_t>(size));
  for (Py_ssize_t i = 0; i < size; ++i) {
    read_group(PyTuple_GET_ITEM(groups, i), &read->emplace_back());
  }
}

std::string_view bytes_of(PyObject* item) {
  if (!PyBytes_Check(item)) throw py::type_error("what is written has to be bytes");
  return {PyBytes_AS_STRING(item), static_cast<size_t>(PyBytes_GET_SIZE(item))};
}

void read_chunk(PyObject* tuple, Written* written) {
  written->body = bytes_of(PyTuple_GET_ITEM(tuple, 1));
  written->events = number(PyTuple_GET_ITEM(tuple, 2));
  written->tokens = number(PyTuple_GET_ITEM(tuple, 4));
  read_groups(PyTuple_GET_ITEM(tuple, 3), &written->groups);
}

void read_write(PyObject* tuple, Written* written) {
  if (PyTuple_GET_SIZE(tuple) == kChunkItems) return read_chunk(tuple, written);
  const std::string_view event = bytes_of(PyTuple_GET_ITEM(tuple, 1));
  written->other = std::make_unique<v1::CallEvent>();
  if (!written->other->ParseFromArray(event.data(), static_cast<int>(event.size()))) {
    throw std::invalid_argument("an event that is none");
  }
}

void fail(const std::string& why, Written* written) {
  written->other = std::make_unique<v1::CallEvent>();
  v1::ErrorDetail* error = written->other->mutable_failed()->mutable_error();
  error->set_status(500);
  error->set_type("server_error");
  error->set_code("engine_error");
  error->set_message("The engine wrote what cannot be sent: " + why);
  error->set_fault(v1::FAULT_UPSTREAM);
  error->set_retry(v1::RETRY_NEVER);
}

}  // namespace

std::vector<uint64_t> read_writes(const py::list& list, std::vector<Written>* batch) {
  std::vector<uint64_t> broken;
  batch->reserve(list.size());
  for (const py::handle item : list) {
    Written& written = batch->emplace_back();
    written.key = py::handle(PyTuple_GET_ITEM(item.ptr(), 0)).cast<uint64_t>();
    try {
      read_write(item.ptr(), &written);
    } catch (const std::exception& error) {
      // Of any kind: the other calls of this turn have nothing to do with it. In its place, so that
      // nothing that this call wrote after it counts.
      broken.push_back(written.key);
      fail(error.what(), &written);
    }
  }
  return broken;
}

}  // namespace penstock::replica
