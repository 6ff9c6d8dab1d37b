// What happened within a request, as events of its span: its first token, and each decision that
// changed its answer.
#pragma once

#include <cstdint>
#include <string_view>

#include "observe/attributes.h"
#include "penstock/v1/explain.pb.h"
#include "penstock/v1/otlp.pb.h"

namespace penstock::observe {

// From those within a request to those of OTLP.
struct Times {
  // Nanoseconds since 1970. `us`: microseconds since the request had been read.
  std::uint64_t at(std::uint64_t us) const {
    constexpr std::uint64_t kNanos = 1000;
    return (received_us + us) * kNanos;
  }

  std::uint64_t received_us = 0;  // microseconds since 1970
};

// Returns its attributes. `at`: nanoseconds since 1970.
Attributes add_event(std::string_view name, std::uint64_t at, otlp::Span& span);

void add_events(const v1::RequestRecord& record, const Times& times, otlp::Span& span);

}  // namespace penstock::observe
