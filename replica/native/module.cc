// The Python module penstock.replica._server: a page of registrations, typed in _server.pyi.
//
// The GIL is released wherever C++ may wait: `write_many`, whose writes take locks that gRPC's
// threads hold; `start` and `stop` of the server; everything of the simulated engine. gRPC's
// threads never take it: they post to the Inbox.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "inbox.h"
#include "inference_server.h"
#include "python_handler.h"
#include "python_writes.h"
#include "simulated/simulated_engine.h"

namespace py = pybind11;
using penstock::replica::Delivered;
using penstock::replica::Inbox;
using penstock::replica::InferenceServer;
using penstock::replica::Written;
using penstock::replica::simulated::Settings;
using penstock::replica::simulated::SimulatedEngine;
namespace v1 = penstock::v1;

namespace {

using Unlocked = py::call_guard<py::gil_scoped_release>;

template <class Message>
Message parsed(std::string_view bytes) {
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    throw py::value_error("not a serialised " + message.GetTypeName());
  }
  return message;
}

py::list drain(Inbox& inbox) {
  std::vector<Inbox::Item> drained;
  {
    py::gil_scoped_release unlocked;  // those who waited for room start reading within `drain`
    drained = inbox.drain();
  }
  py::list items;
  for (const Inbox::Item& item : drained) {
    items.append(py::make_tuple(static_cast<int>(item.kind), item.key, py::bytes(item.payload)));
  }
  return items;
}

// The list keeps the bytes alive while the GIL is released.
py::tuple write_many(InferenceServer& server, const py::list& writes) {
  std::vector<Written> batch;
  const std::vector<uint64_t> broken = penstock::replica::read_writes(writes, &batch);
  Delivered delivered;
  {
    py::gil_scoped_release unlocked;
    delivered = penstock::replica::write_many(&server.switchboard(), batch);
  }
  return py::make_tuple(delivered.full, delivered.gone, broken);
}

Settings settings(const py::dict& values) {
  Settings s;
  s.behaviour.ttft_ms = values["ttft_ms"].cast<uint32_t>();
  s.behaviour.tokens_per_second = values["tokens_per_second"].cast<double>();
  s.behaviour.answer_tokens = values["answer_tokens"].cast<uint32_t>();
  s.behaviour.die_after_tokens = values["die_after_tokens"].cast<uint64_t>();
  s.behaviour.hang_after_tokens = values["hang_after_tokens"].cast<uint64_t>();
  s.max_running = values["max_running"].cast<uint32_t>();
  s.kv_blocks = values["kv_blocks"].cast<uint32_t>();
  s.prefill_tokens_per_second = values["prefill_tokens_per_second"].cast<double>();
  s.microserving = values["microserving"].cast<bool>();
  s.no_resume = values["no_resume"].cast<std::string>();
  s.refuse_share = values["refuse_share"].cast<double>();
  s.per_request = values["per_request"].cast<bool>();
  s.max_model_len = values["max_model_len"].cast<uint32_t>();
  s.backend_version = values["backend_version"].cast<std::string>();
  s.model = values["model"].cast<std::string>();
  s.model_version = values["model_version"].cast<std::string>();
  return s;
}

// Of each adapter its name, the calls that use it, and seconds since its last use.
std::vector<std::tuple<std::string, uint32_t, double>> adapter_uses(const SimulatedEngine& engine) {
  std::vector<std::tuple<std::string, uint32_t, double>> told;
  const py::gil_scoped_release unlocked;
  for (const auto& use : engine.adapter_uses()) {
    told.emplace_back(use.name, use.calls, std::chrono::duration<double>(use.since).count());
  }
  return told;
}

// The prompt's ids; or none, and why, as an `ErrorDetail`.
py::tuple tokenize(const SimulatedEngine& engine, std::string_view request) {
  std::variant<std::vector<uint32_t>, v1::ErrorDetail> told;
  {
    const py::gil_scoped_release unlocked;
    told = engine.tokenize(parsed<v1::CallRequest>(request));
  }
  if (const auto* error = std::get_if<v1::ErrorDetail>(&told)) {
    return py::make_tuple(py::tuple(), py::bytes(error->SerializeAsString()));
  }
  return py::make_tuple(py::tuple(py::cast(std::get<std::vector<uint32_t>>(told))), py::bytes());
}

std::vector<uint64_t> block_hashes(const std::vector<uint32_t>& token_ids, std::string_view adapter,
                                   std::string_view digest, std::string_view salt) {
  return penstock::replica::simulated::block_hashes(token_ids, {adapter, digest, salt});
}

size_t matched_blocks(SimulatedEngine& engine, const std::vector<uint64_t>& hashes) {
  return engine.matched_blocks(hashes);
}

void add_blocks(SimulatedEngine& engine, const std::vector<uint64_t>& hashes) {
  engine.add_blocks(hashes);
}

}  // namespace

PYBIND11_MODULE(_server, m) {
  m.def("block_hashes", &block_hashes, Unlocked());

  py::class_<Inbox, std::shared_ptr<Inbox>>(m, "Inbox")
      .def(py::init<>())
      .def("fileno", &Inbox::fd)
      .def("drain", &drain);

  py::class_<SimulatedEngine, std::shared_ptr<SimulatedEngine>>(m, "SimulatedEngine")
      .def(py::init([](const py::dict& values, std::shared_ptr<Inbox> inbox) {
        return std::make_shared<SimulatedEngine>(settings(values), std::move(inbox));
      }))
      .def(
          "ask",
          [](SimulatedEngine& engine, uint64_t key, std::string_view request, bool internal) {
            engine.ask(key, parsed<v1::CallRequest>(request), internal);
          },
          Unlocked())
      .def("cancel_asked", &SimulatedEngine::cancel_asked, Unlocked())
      .def(
          "figures",
          [](const SimulatedEngine& engine) {
            const penstock::replica::simulated::Figures figures = engine.figures();
            return std::make_tuple(figures.running, figures.waiting, figures.tokens,
                                   figures.kv_blocks_used);
          },
          Unlocked())
      .def(
          "add_adapter",
          [](SimulatedEngine& engine, std::string name, std::string digest) {
            engine.add_adapter({std::move(name), std::move(digest)});
          },
          Unlocked())
      .def(
          "fail_parked",
          [](SimulatedEngine& engine, std::string name, std::string digest, std::string_view error,
             bool all) {
            engine.fail_parked({std::move(name), std::move(digest)}, parsed<v1::ErrorDetail>(error),
                               all);
          },
          Unlocked())
      .def("remove_adapter", &SimulatedEngine::remove_adapter, Unlocked())
      .def("close_adapter", &SimulatedEngine::close_adapter, Unlocked())
      .def("reopen_adapter", &SimulatedEngine::reopen_adapter, Unlocked())
      .def("wake_wrongly", &SimulatedEngine::wake_wrongly, Unlocked())
      .def("adapter_uses", &adapter_uses)
      .def("tokenize", &tokenize)
      .def("matched_blocks", &matched_blocks, Unlocked())
      .def("add_blocks", &add_blocks, Unlocked())
      .def("forget_blocks", &SimulatedEngine::forget_blocks, Unlocked())
      .def("set_leased", &SimulatedEngine::set_leased, Unlocked())
      .def("tell_when_idle", &SimulatedEngine::tell_when_idle, Unlocked())
      .def("stop", &SimulatedEngine::stop, Unlocked());

  py::class_<InferenceServer>(m, "InferenceServer")
      .def(py::init([](std::string listen, const std::shared_ptr<Inbox>& inbox, std::string token,
                       int keepalive_ms) {
             penstock::replica::ServerOptions options;
             options.listen = std::move(listen);
             options.callers_token = std::move(token);
             options.keepalive = std::chrono::milliseconds(keepalive_ms);
             options.keepalive_timeout = options.keepalive / 2;
             return std::make_unique<InferenceServer>(options, inbox);
           }),
           py::arg("listen"), py::arg("inbox"), py::arg("callers_token") = "",
           py::arg("keepalive_ms") = 20'000, Unlocked())
      .def_property_readonly("address", &InferenceServer::address)
      .def("answer_with",
           [](InferenceServer& server, std::shared_ptr<SimulatedEngine> engine) {
             server.answer_with(std::move(engine));
           })
      .def("write_many", &write_many)
      .def(
          "set_load",
          [](InferenceServer& server, std::string_view load) {
            server.set_load(parsed<v1::Load>(load));
          },
          Unlocked())
      .def("load",
           [](InferenceServer& server) {
             std::string bytes;
             {
               py::gil_scoped_release unlocked;
               bytes = server.load().SerializeAsString();
             }
             return py::bytes(bytes);
           })
      .def(
          "running", [](InferenceServer& server) { return server.switchboard().running(); },
          Unlocked())
      .def(
          "fail_all",
          [](InferenceServer& server, std::string_view error) {
            server.switchboard().fail_all(parsed<v1::ErrorDetail>(error));
          },
          Unlocked())
      .def(
          "reply",
          [](InferenceServer& server, uint64_t key, std::string_view reply) {
            server.control_desk().reply(key, reply);
          },
          Unlocked())
      .def(
          "refuse",
          [](InferenceServer& server, uint64_t key, const std::string& message) {
            server.control_desk().refuse(key, message);
          },
          Unlocked())
      .def(
          "stop",
          [](InferenceServer& server, int grace_ms) {
            server.stop(std::chrono::milliseconds(grace_ms));
          },
          Unlocked());
}
