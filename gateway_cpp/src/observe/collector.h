// Where spans are sent, as OpenTelemetry's standard variables say. Pure.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace penstock::observe {

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

struct Collector {
  std::string url{};                 // that spans are posted to; empty: nowhere
  NamedTexts headers{};              // secrets, mostly
  std::string certificates{};        // file of those that prove it, PEM; empty: the system's
  std::string client_certificate{};  // file that we show it, PEM; empty: none
  std::string client_key{};
  std::chrono::milliseconds timeout{10'000};
  bool compresses = false;
  NamedTexts resource{};  // what the operator says of this process besides

  // Its address without what may be secret in it.
  std::string shown() const;
};

// A variable's value; null: it is not set.
using Variables = std::function<const char*(const char* name)>;

// What OTEL_EXPORTER_OTLP_* say, those of traces before those of all. No endpoint: no collector. An
// error names the variable that is wrong; the value with it, unless it may be secret.
base::Result<Collector> collector_of(const Variables& variables);

}  // namespace penstock::observe
