// What became of the shadows of each rule since the process began, and how many more may begin. One
// for the process; any thread; a short lock for each call, which only sampled requests pay.
//
// Bounded: what comes of rules beyond the first kMostRules is counted as one rule without uid.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "admission/shadow_class.h"
#include "admission/tenants.h"
#include "base/clock.h"
#include "routing/route_snapshot.h"

namespace penstock::admission {

using ShadowCounts = std::array<std::uint64_t, kShadowOutcomes>;

struct ShadowRow {
  std::string uid;
  std::string name;
  std::uint32_t under_way = 0;
  ShadowCounts counts{};
};

class ShadowBook {
 public:
  static constexpr std::size_t kMostRules = 1000;

  ShadowBook();
  ShadowBook(const ShadowBook&) = delete;
  ShadowBook& operator=(const ShadowBook&) = delete;

  // One more is under way from now on, until end(); or why it may not be.
  std::optional<ShadowOutcome> begin(const routing::ShadowRule& rule, base::SteadyTime now);
  void end(const routing::ShadowRule& rule);
  // The same of a question about the rule's pairs; so many may be under way besides those.
  static constexpr std::uint32_t kMostQuestions = 4;
  std::optional<ShadowOutcome> begin_question(const routing::ShadowRule& rule);
  void end_question(const routing::ShadowRule& rule);
  void count(std::string_view uid, std::string_view name, ShadowOutcome outcome);
  std::vector<ShadowRow> rows() const;  // sorted by uid

  // Who pays for the rule's shadows: no tenant, but for the rule's own money of the day.
  Caller payer(const routing::ShadowRule& rule) const;

 private:
  struct Entry {
    ShadowRow row;
    base::SteadyTime minute{};  // when it began
    std::uint32_t begun = 0;    // in that minute
    std::uint32_t questions = 0;
  };
  Entry& entry(std::string_view uid, std::string_view name);

  const std::shared_ptr<const Tenant> tenant_;
  const std::shared_ptr<TenantMeter> meter_;  // without limits
  mutable std::mutex mutex_;                  // guards all below
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace penstock::admission
