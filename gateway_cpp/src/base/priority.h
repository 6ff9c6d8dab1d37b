// How urgent a request is, in the words of `x-penstock-priority`.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace penstock::base {

enum class Priority : std::uint8_t { kLow, kNormal, kHigh };  // in that order

// "low", "normal" or "high"; nothing for any other word: upper case is one.
std::optional<Priority> priority_named(std::string_view word);
std::string_view name(Priority priority);

}  // namespace penstock::base
