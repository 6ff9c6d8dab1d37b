#include "proxy/metadata.h"

#include <array>
#include <cstdio>

#include "base/json_text.h"

namespace penstock::proxy {

namespace {

void add_text(std::string& out, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  out += ",\"" + std::string(name) + "\":";
  base::append_json_string(out, value);
}

void add_ms(std::string& out, std::string_view name, std::chrono::nanoseconds time) {
  std::array<char, 48> text{};
  const double ms = std::chrono::duration<double, std::milli>(time).count();
  const int size = std::snprintf(text.data(), text.size(), "%.3f", ms);
  out += ",\"" + std::string(name) + "\":";
  out.append(text.data(), static_cast<size_t>(size));
}

void add_count(std::string& out, std::string_view name, uint64_t count) {
  out += ",\"" + std::string(name) + "\":" + std::to_string(count);
}

}  // namespace

std::string metadata_event(const openai::ChunkNames& names, const StreamFacts& facts) {
  std::string out = R"(data: {"id":)" + base::json_string(names.id);
  out += R"(,"object":)" + base::json_string(names.object);
  out += R"(,"created":)" + (names.created.empty() ? "0" : names.created);
  out += R"(,"model":)" + base::json_string(names.model);
  out += R"(,"choices":[],"penstock":{"trace_id":)" + base::json_string(facts.trace_id);
  add_text(out, "backend", facts.backend);
  add_text(out, "replica", facts.replica);
  add_text(out, "backend_version", facts.backend_version);
  add_text(out, "model_version", facts.model_version);
  add_text(out, "adapter_version", facts.adapter_version);
  add_text(out, "degraded", facts.degraded);
  if (facts.trimmed_messages > 0 || facts.trimmed_tokens > 0) {
    add_count(out, "trimmed_messages", facts.trimmed_messages);
    add_count(out, "trimmed_tokens", facts.trimmed_tokens);
  }
  add_ms(out, "queue_ms", facts.queue);
  add_ms(out, "estimated_wait_ms", facts.estimated_wait);
  add_ms(out, "ttft_ms", facts.ttft);
  add_ms(out, "total_ms", facts.total);
  add_count(out, "prompt_tokens", facts.prompt_tokens);
  add_count(out, "completion_tokens", facts.completion_tokens);
  add_count(out, "cached_tokens", facts.cached_tokens);
  add_count(out, "attempts", facts.attempts);
  if (facts.resumes > 0) add_count(out, "resumes", facts.resumes);
  return out + "}}\n\n";
}

}  // namespace penstock::proxy
