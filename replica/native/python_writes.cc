#include "python_writes.h"

#include <stdexcept>
#include <string>

namespace penstock::replica {
namespace {

namespace py = pybind11;

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

void read_groups(PyObject* groups, std::vector<v1::TokenGroup>* read) {
  for (const py::handle group : py::handle(groups)) {
    v1::TokenGroup& made = read->emplace_back();
    made.set_choice(group.attr("choice").cast<uint32_t>());
    for (const py::handle id : group.attr("token_ids")) made.add_token_ids(id.cast<uint32_t>());
    made.set_finish_reason(text(group.attr("finish_reason").ptr()));
    made.set_stop_reason(text(group.attr("stop_reason").ptr()));
  }
}

void read_chunk(PyObject* tuple, Written* written) {
  PyObject* const body = PyTuple_GET_ITEM(tuple, 2);
  if (!PyBytes_Check(body)) throw py::type_error("a body has to be bytes");
  written->body = {PyBytes_AS_STRING(body), static_cast<size_t>(PyBytes_GET_SIZE(body))};
  written->events = number(PyTuple_GET_ITEM(tuple, 3));
  written->tokens = number(PyTuple_GET_ITEM(tuple, 5));
  PyObject* const groups = PyTuple_GET_ITEM(tuple, 4);
  if (!PyTuple_Check(groups) || PyTuple_GET_SIZE(groups) > 0) {
    read_groups(groups, &written->groups);
  }
}

void read_head(PyObject* tuple, v1::Head* head) {
  head->set_status(number(PyTuple_GET_ITEM(tuple, 2)));
  head->set_content_type(text(PyTuple_GET_ITEM(tuple, 3)));
  head->set_prompt_tokens(number(PyTuple_GET_ITEM(tuple, 4)));
  head->set_cached_tokens(number(PyTuple_GET_ITEM(tuple, 5)));
  head->set_queue_wait_us(number(PyTuple_GET_ITEM(tuple, 6)));
  head->set_backend_version(text(PyTuple_GET_ITEM(tuple, 7)));
  head->set_model_version(text(PyTuple_GET_ITEM(tuple, 8)));
  head->set_trimmed_messages(number(PyTuple_GET_ITEM(tuple, 9)));
  head->set_trimmed_tokens(number(PyTuple_GET_ITEM(tuple, 10)));
  head->set_model(text(PyTuple_GET_ITEM(tuple, 11)));
}

uint64_t large_number(PyObject* tuple, Py_ssize_t at) {
  return py::handle(PyTuple_GET_ITEM(tuple, at)).cast<uint64_t>();
}

// Four items from `at` on.
void read_usage(PyObject* tuple, Py_ssize_t at, v1::Usage* usage) {
  usage->set_prompt_tokens(number(PyTuple_GET_ITEM(tuple, at)));
  usage->set_completion_tokens(number(PyTuple_GET_ITEM(tuple, at + 1)));
  usage->set_cached_tokens(number(PyTuple_GET_ITEM(tuple, at + 2)));
  usage->set_cost_nanousd(large_number(tuple, at + 3));
}

void read_finished(PyObject* tuple, v1::Finished* finished) {
  read_usage(tuple, 2, finished->mutable_usage());
  finished->mutable_timings()->set_queue_us(large_number(tuple, 6));
  finished->mutable_timings()->set_prefill_us(large_number(tuple, 7));
  finished->mutable_timings()->set_decode_us(large_number(tuple, 8));
  for (const py::handle reason : py::handle(PyTuple_GET_ITEM(tuple, 9))) {
    finished->add_finish_reasons(text(reason.ptr()));
  }
  finished->set_adapter(text(PyTuple_GET_ITEM(tuple, 10)));
  finished->set_backend(text(PyTuple_GET_ITEM(tuple, 11)));
  finished->set_backend_version(text(PyTuple_GET_ITEM(tuple, 12)));
  finished->set_model_version(text(PyTuple_GET_ITEM(tuple, 13)));
  finished->set_model(text(PyTuple_GET_ITEM(tuple, 14)));
  finished->set_request_id(text(PyTuple_GET_ITEM(tuple, 15)));
  finished->set_trace_id(text(PyTuple_GET_ITEM(tuple, 16)));
  finished->set_provider_request_id(text(PyTuple_GET_ITEM(tuple, 17)));
  finished->set_ttft_us(large_number(tuple, 18));
  finished->set_total_us(large_number(tuple, 19));
}

void read_failed(PyObject* tuple, v1::Failed* failed) {
  v1::ErrorDetail* const error = failed->mutable_error();
  error->set_status(number(PyTuple_GET_ITEM(tuple, 2)));
  error->set_type(text(PyTuple_GET_ITEM(tuple, 3)));
  error->set_code(text(PyTuple_GET_ITEM(tuple, 4)));
  error->set_message(text(PyTuple_GET_ITEM(tuple, 5)));
  error->set_param(text(PyTuple_GET_ITEM(tuple, 6)));
  error->set_fault(static_cast<v1::Fault>(number(PyTuple_GET_ITEM(tuple, 7))));
  error->set_retry(static_cast<v1::Retry>(number(PyTuple_GET_ITEM(tuple, 8))));
  error->set_retry_after_ms(number(PyTuple_GET_ITEM(tuple, 9)));
  read_usage(tuple, 10, failed->mutable_usage());
}

// How many items a tuple of each kind has.
Py_ssize_t length_of(WriteKind kind) {
  switch (kind) {
    case WriteKind::kChunk:
      return 6;
    case WriteKind::kHead:
      return 12;
    case WriteKind::kFinished:
      return 20;
    case WriteKind::kFailed:
      return 14;
    case WriteKind::kCancelled:
      return 6;
  }
  return -1;
}

void read_write(PyObject* tuple, Written* written) {
  const auto kind = static_cast<WriteKind>(number(PyTuple_GET_ITEM(tuple, 1)));
  if (PyTuple_GET_SIZE(tuple) != length_of(kind)) {
    throw std::invalid_argument("a write of kind " + std::to_string(static_cast<int>(kind)) +
                                " has " + std::to_string(PyTuple_GET_SIZE(tuple)) + " items");
  }
  if (kind == WriteKind::kChunk) return read_chunk(tuple, written);
  written->other = std::make_unique<v1::CallEvent>();
  if (kind == WriteKind::kHead) read_head(tuple, written->other->mutable_head());
  if (kind == WriteKind::kFinished) read_finished(tuple, written->other->mutable_finished());
  if (kind == WriteKind::kFailed) read_failed(tuple, written->other->mutable_failed());
  if (kind == WriteKind::kCancelled) {
    read_usage(tuple, 2, written->other->mutable_cancelled()->mutable_usage());
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
