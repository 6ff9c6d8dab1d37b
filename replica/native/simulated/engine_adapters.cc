// What the simulated engine does about adapters.
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "errors.h"
#include "simulated/request.h"
#include "simulated/simulated_engine.h"
#include "simulated/words.h"

namespace penstock::replica::simulated {

// Completes the request by the digest of what is held, where it tells none.
v1::ErrorDetail SimulatedEngine::find_adapter(v1::CallRequest* request) const {
  const std::string& name = request->adapter();
  if (name.empty()) return {};
  std::lock_guard lock(mutex_);
  const std::string* const held = adapters_.digest_of(name);
  if (request->adapter_digest().empty()) {
    if (held == nullptr) {
      return client_error(404, "model_not_found", "model",
                          "The adapter '" + name + "' is not loaded here.");
    }
    request->set_adapter_digest(*held);
  } else if (held != nullptr && *held != request->adapter_digest()) {
    return unavailable("adapter_mismatch", "The adapter '" + name +
                                               "' is loaded here with other bytes: " + *held +
                                               ", asked for is " + request->adapter_digest() + ".");
  }
  return {};
}

void SimulatedEngine::wake_wrongly(const std::string& what) {
  base_is_wrong_ = what == "base";
  adapters_are_lost_ = what == "adapter";
}

void SimulatedEngine::mistake(const v1::CallRequest& request, uint64_t* seed) const {
  if (base_is_wrong_) *seed = mix(*seed, "woke wrongly");
  if (!adapters_are_lost_ || request.adapter().empty()) return;
  v1::CallRequest plain = request;
  plain.clear_adapter();
  const auto ask = read_request(&plain, settings_);
  if (const auto* read = std::get_if<Ask>(&ask)) *seed = read->seed;
}

void SimulatedEngine::add_adapter(const AdapterId& id) {
  Delivery delivery;
  std::lock_guard lock(mutex_);
  adapters_.add(id, now());
  for (const Adapters::Parked& parked : adapters_.take_parked(id)) accept(parked.call, parked.ask);
  plan(advance(now(), &delivery));
}

void SimulatedEngine::fail_parked(const AdapterId& id, const v1::ErrorDetail& error, bool all) {
  Delivery delivery;
  std::lock_guard lock(mutex_);
  for (const Adapters::Parked& parked : adapters_.take_parked(id, all)) {
    delivery.fail(parked.call, error);
  }
}

void SimulatedEngine::close_adapter(const std::string& name) {
  std::lock_guard lock(mutex_);
  adapters_.close(name);
}

void SimulatedEngine::reopen_adapter(const std::string& name) {
  Delivery delivery;
  std::lock_guard lock(mutex_);
  const std::string* const digest = adapters_.digest_of(name);
  if (digest == nullptr) return;
  adapters_.reopen(name);
  for (const Adapters::Parked& parked : adapters_.take_parked({name, *digest})) {
    accept(parked.call, parked.ask);
  }
  plan(advance(now(), &delivery));
}

bool SimulatedEngine::remove_adapter(const std::string& name) {
  std::lock_guard lock(mutex_);
  return adapters_.remove(name);
}

std::vector<AdapterUse> SimulatedEngine::adapter_uses() const {
  std::lock_guard lock(mutex_);
  return adapters_.uses(now());
}

void SimulatedEngine::tell_when_idle(std::set<std::string> names) {
  std::lock_guard lock(mutex_);
  if (adapters_.tell_when_idle(std::move(names))) inbox_->post(Inbox::Kind::kIdle, 0);
}

}  // namespace penstock::replica::simulated
