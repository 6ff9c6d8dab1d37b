#include "observe/span_events.h"

#include <algorithm>
#include <string>

namespace penstock::observe {
namespace {

constexpr std::string_view kResume = "resume:";

std::string_view name_of(v1::Stay::Way way) {
  switch (way) {
    case v1::Stay::WAY_CANARY:
      return "canary";
    case v1::Stay::WAY_RETURNED:
      return "returned";
    case v1::Stay::WAY_RUNG:
      return "rung";
    default:
      return "named";
  }
}

class Events {
 public:
  Events(const v1::RequestRecord& record, const Times& times, otlp::Span& span)
      : record_(record), times_(times), span_(span) {}

  void add_stays() {
    for (int i = 0; i < record_.stays_size(); ++i) {
      const v1::Stay& stay = record_.stays(i);
      if (stay.way() != v1::Stay::WAY_NAMED && !stay.passed_over()) add_move(stay);
      if (stay.turn().place() > 0) add_queued(stay);
      if (!stay.left_for().empty()) add_left(stay, entered(i + 1));
    }
  }

  void add_answer() {
    if (record_.first_byte_us() > 0) add("first_token", record_.first_byte_us());
    for (const v1::Gap& gap : record_.gaps()) {
      add("gap", gap.at_us()).seconds("penstock.gap", std::uint64_t{gap.ms()} * 1000);
    }
  }

  void add_changes() {
    if (!record_.degraded().empty()) add_degraded();
    if (record_.quarantined()) add("quarantined", record_.duration_us());
    if (record_.suspect()) add("suspect", began());
    if (!record_.program().empty()) add_program();
    for (const v1::Attempt& attempt : record_.attempts()) {
      if (attempt.reason().starts_with(kResume)) add_resumed(attempt);
    }
  }

 private:
  Attributes add(std::string_view name, std::uint64_t at_us) {
    return add_event(name, times_.at(at_us), span_);
  }

  // When it came to its stay of that number; past the last one, when it ended.
  std::uint64_t entered(int number) const {
    return number < record_.stays_size() ? record_.stays(number).entered_us()
                                         : record_.duration_us();
  }
  // When it came to where it ended.
  std::uint64_t began() const { return entered(std::max(0, record_.stays_size() - 1)); }

  void add_move(const v1::Stay& stay) {
    Attributes attributes = add("moved", stay.entered_us());
    attributes.text("penstock.deployment", stay.deployment());
    attributes.text("penstock.way", name_of(stay.way()));
  }

  void add_queued(const v1::Stay& stay) {
    const v1::QueueTurn& turn = stay.turn();
    Attributes attributes = add("queued", stay.entered_us());
    attributes.number("penstock.queue.place", turn.place());
    attributes.seconds("penstock.queue.wait", turn.waited_us());
  }

  void add_left(const v1::Stay& stay, std::uint64_t at) {
    Attributes attributes = add(stay.passed_over() ? "passed_over" : "left", at);
    attributes.text("penstock.deployment", stay.deployment());
    attributes.text("penstock.reason", stay.left_for());
  }

  void add_degraded() {
    Attributes attributes = add("degraded", began());
    attributes.text("penstock.reason", record_.degraded());
    attributes.text("penstock.rung", record_.rung());
    attributes.number("penstock.trimmed.messages", record_.trimmed_messages());
    attributes.number("penstock.trimmed.tokens", record_.trimmed_tokens());
  }

  // Its legs were done before the request was sent anywhere.
  void add_program() {
    const std::uint64_t at =
        record_.attempts().empty() ? record_.duration_us() : record_.attempts(0).sent_us();
    add("program", at).text("penstock.program", record_.program());
    for (const v1::Leg& leg : record_.legs()) {
      Attributes attributes = add("leg", at);
      attributes.text("penstock.leg.call", leg.call());
      attributes.text("penstock.replica", leg.replica());
      attributes.number("penstock.leg.tokens", leg.tokens());
      attributes.seconds("penstock.leg.took", leg.took_us());
      attributes.text("error.type", leg.failure());
    }
  }

  void add_resumed(const v1::Attempt& attempt) {
    Attributes attributes = add("resumed", attempt.sent_us());
    attributes.text("penstock.reason", std::string_view(attempt.reason()).substr(kResume.size()));
    attributes.text("penstock.replica", attempt.replica());
  }

  const v1::RequestRecord& record_;
  const Times& times_;
  otlp::Span& span_;
};

}  // namespace

Attributes add_event(std::string_view name, std::uint64_t at, otlp::Span& span) {
  otlp::Span::Event& event = *span.add_events();
  event.set_time_unix_nano(at);
  event.set_name(std::string(name));
  return Attributes(event.mutable_attributes());
}

void add_events(const v1::RequestRecord& record, const Times& times, otlp::Span& span) {
  Events events(record, times, span);
  events.add_stays();
  events.add_changes();
  events.add_answer();
  using Event = otlp::Span::Event;
  auto& added = *span.mutable_events();
  std::stable_sort(added.begin(), added.end(), [](const Event& one, const Event& other) {
    return one.time_unix_nano() < other.time_unix_nano();
  });
}

}  // namespace penstock::observe
