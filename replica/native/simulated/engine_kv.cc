// What the simulated engine does about KV that is here already, and for calls of this process.
#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "simulated/inbox_outlet.h"
#include "simulated/request.h"
#include "simulated/simulated_engine.h"

namespace penstock::replica::simulated {

std::variant<std::vector<uint32_t>, v1::ErrorDetail> SimulatedEngine::tokenize(
    v1::CallRequest request) const {
  auto ask = read_request(&request, settings_);
  if (auto* error = std::get_if<v1::ErrorDetail>(&ask)) return std::move(*error);
  return std::move(std::get<Ask>(ask).prompt_ids);
}

size_t SimulatedEngine::matched_blocks(std::span<const uint64_t> hashes) {
  std::lock_guard lock(mutex_);
  return cache_.matched(hashes);
}

void SimulatedEngine::add_blocks(std::span<const uint64_t> hashes) {
  std::lock_guard lock(mutex_);
  cache_.add(hashes);
}

void SimulatedEngine::forget_blocks() {
  std::lock_guard lock(mutex_);
  cache_.clear();
}

void SimulatedEngine::set_leased(uint64_t blocks) {
  Delivery delivery;
  std::lock_guard lock(mutex_);
  figures_.leased_blocks = blocks;
  plan(advance(now(), &delivery));
}

void SimulatedEngine::hash_prompt(const Ask& ask, Stream* stream) const {
  if (!settings_.microserving) return;
  const v1::CallRequest& request = stream->call->request;
  stream->hashes = block_hashes(
      ask.prompt_ids, {request.adapter(), request.adapter_digest(), request.tenant_salt()});
}

// As in vLLM the prompt's last token is always computed.
void SimulatedEngine::find_cached(Stream* stream) {
  if (stream->hashes.empty()) return;
  const auto most = (stream->prompt_tokens - 1) / kBlockTokens;
  const auto blocks = std::min<uint64_t>(cache_.matched(stream->hashes), most);
  stream->found = static_cast<uint32_t>(blocks * kBlockTokens);
  stream->moved = std::min(stream->call->request.kv().moved_tokens(), stream->found);
}

Time SimulatedEngine::prefill_of(const Stream& stream) const {
  const Time usual = std::chrono::milliseconds(stream.behaviour.ttft_ms);
  if (settings_.prefill_tokens_per_second <= 0) return usual;
  const double seconds =
      (stream.prefill_tokens() - stream.found) / settings_.prefill_tokens_per_second;
  return usual + Time(static_cast<int64_t>(seconds * 1e9));
}

void SimulatedEngine::ask(uint64_t key, v1::CallRequest request, bool internal) {
  auto call = std::make_shared<Call>(kAskedKeys | key, 0, 0);
  call->request.Swap(&request);
  call->internal = internal;
  call->outlet = std::make_shared<InboxOutlet>(inbox_, key);
  {
    std::lock_guard lock(mutex_);
    asked_[key] = call;
  }
  start({&call, 1});
}

void SimulatedEngine::cancel_asked(uint64_t key) {
  CallPtr call;
  {
    std::lock_guard lock(mutex_);
    const auto found = asked_.find(key);
    if (found == asked_.end()) return;
    call = found->second;
    asked_.erase(found);
  }
  call->answer.close();
  cancel(call);
}

}  // namespace penstock::replica::simulated
