#include "base/request_end.h"

namespace penstock::base {
namespace {

constexpr std::array<std::string_view, kOutcomes> kOutcomeNames = {
    "succeeded", "failed", "rejected", "cancelled", "invalid"};
constexpr std::array<std::string_view, kPhases> kPhaseNames = {
    "parse", "resolve", "admit", "select", "open", "stream", "settle"};

}  // namespace

std::string_view name(Outcome outcome) { return kOutcomeNames[static_cast<std::size_t>(outcome)]; }

std::string_view name(Phase phase) { return kPhaseNames[static_cast<std::size_t>(phase)]; }

}  // namespace penstock::base
