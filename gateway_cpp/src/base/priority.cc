#include "base/priority.h"

#include <array>

namespace penstock::base {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"low", "normal", "high"};

}  // namespace

std::string_view name(Priority priority) { return kNames[static_cast<std::size_t>(priority)]; }

std::optional<Priority> priority_named(std::string_view word) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == word) return static_cast<Priority>(i);
  }
  return std::nullopt;
}

}  // namespace penstock::base
