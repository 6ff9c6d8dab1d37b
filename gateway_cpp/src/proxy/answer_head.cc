#include "proxy/answer_head.h"

#include <array>
#include <optional>
#include <utility>

#include "base/printable.h"
#include "proxy/exchange.h"
#include "proxy/metadata.h"

namespace penstock::proxy {

namespace {

using std::chrono::milliseconds;

// The version of OpenAI's API that answers follow; some clients ask for the header.
constexpr std::string_view kOpenAiVersion = "2020-10-01";

std::string milliseconds_text(std::chrono::nanoseconds duration) {
  return std::to_string(std::chrono::duration_cast<milliseconds>(duration).count());
}

void add_if_told(AnswerHead& head, std::string_view name, std::string value) {
  if (value.empty() || !base::is_printable_ascii(value)) return;
  head.headers.push_back({name, std::move(value)});
}

void add_rate(AnswerHead& head, const std::optional<admission::RateWindow>& window,
              const std::array<std::string_view, 3>& names) {
  if (!window) return;
  head.headers.push_back({names[0], std::to_string(window->limit)});
  head.headers.push_back({names[1], std::to_string(window->remaining)});
  head.headers.push_back({names[2], admission::reset_text(window->reset)});
}

// How the tenant's limits stand, where it has any.
void add_rates(AnswerHead& head, const admission::RateState& rates) {
  add_rate(head, rates.requests,
           {"x-ratelimit-limit-requests", "x-ratelimit-remaining-requests",
            "x-ratelimit-reset-requests"});
  add_rate(
      head, rates.tokens,
      {"x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"});
}

// Who answered, and what it had not to compute. A head that counted no prompt says nothing of that.
void add_facts(AnswerHead& head, std::string backend_version, const upstream::Head& told) {
  add_if_told(head, "x-penstock-backend-version", std::move(backend_version));
  add_if_told(head, "x-penstock-model-version", told.model_version);
  if (told.prompt_tokens == 0) return;
  head.headers.push_back({"x-penstock-prefix-hit", std::to_string(told.cached_tokens)});
  if (told.kv_moved_tokens == 0) return;
  head.headers.push_back({"x-penstock-kv-moved", std::to_string(told.kv_moved_tokens)});
}

// Model and adapter, with their versions. A replica that does not tell its model has the route's.
std::string backend_version(const Exchange& x) {
  const upstream::Head& told = x.attempts.call().head();
  const std::string& adapter = x.settlement.record.adapter();
  const std::string& model = told.model.empty() ? x.at.route.deployment->model : told.model;
  std::string version;
  version.reserve(model.size() + told.model_version.size() + adapter.size() + 2);
  version += model;
  if (!told.model_version.empty()) version.append("@").append(told.model_version);
  if (!adapter.empty()) version.append("+").append(adapter);
  return version;
}

}  // namespace

void add_beginning(AnswerHead& head, std::chrono::nanoseconds age, std::string_view trace_id) {
  head.headers.push_back({"openai-processing-ms", milliseconds_text(age)});
  head.headers.push_back({"openai-version", std::string(kOpenAiVersion)});
  head.headers.push_back({"x-penstock-trace-id", std::string(trace_id)});
}

AnswerHead head_of(const Exchange& x, unsigned status, std::string_view content_type) {
  AnswerHead head{.status = status, .content_type = content_type, .headers = {}};
  head.headers.reserve(16);
  const RequestRecord& record = x.settlement.record;
  const auto now = x.parts.clock.steady_now();
  add_beginning(head, x.settlement.age(now), record.trace_id);
  if (!record.replica.empty()) {
    head.headers.push_back({"x-penstock-backend", record.deployment()});
    head.headers.push_back({"x-penstock-replica", record.replica});
    head.headers.push_back({"x-penstock-queue-ms", milliseconds_text(record.queue_wait)});
    head.headers.push_back(
        {"x-penstock-estimated-wait-ms", std::to_string(x.at.estimated_wait.count())});
  }
  if (!record.adapter().empty()) {
    head.headers.push_back({"x-penstock-adapter-version", record.adapter()});
  }
  if (!record.degraded.empty()) {
    head.headers.push_back({"x-penstock-degraded", std::string(record.degraded)});
  }
  if (record.is_trimmed()) head.headers.push_back({"x-penstock-trimmed", trimmed_text(record)});
  if (x.attempts.is_under_way() && x.attempts.call().has_head()) {
    add_facts(head, backend_version(x), x.attempts.call().head());
  }
  add_rates(head, x.caller().meter->rate_state(now));
  return head;
}

std::string making_of(const Exchange& x) {
  const RequestRecord& record = x.settlement.record;
  const upstream::Head& head = x.attempts.call().head();
  const upstream::Usage usage = x.attempts.call().outcome().usage.value_or(upstream::Usage());
  const std::string version = backend_version(x);
  return metadata_event(*x.delivery.names(), {.trace_id = record.trace_id,
                                              .backend = record.deployment(),
                                              .replica = record.replica,
                                              .backend_version = version,
                                              .model_version = head.model_version,
                                              .adapter_version = record.adapter(),
                                              .degraded = record.degraded,
                                              .trimmed_messages = head.trimmed_messages,
                                              .trimmed_tokens = head.trimmed_tokens,
                                              .queue = record.queue_wait,
                                              .estimated_wait = x.at.estimated_wait,
                                              .ttft = record.ttft.value_or(x.settlement.age()),
                                              .total = x.settlement.age(),
                                              .prompt_tokens = usage.prompt_tokens,
                                              .completion_tokens = usage.completion_tokens,
                                              .cached_tokens = usage.cached_tokens,
                                              .attempts = record.attempts_made,
                                              .resumes = x.resumes()});
}

}  // namespace penstock::proxy
