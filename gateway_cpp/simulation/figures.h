// What a simulation measured, and what is said of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace penstock::simulation {

class Distribution {
 public:
  void add(double value) { values_.push_back(value); }
  std::size_t size() const { return values_.size(); }
  double mean() const {
    const double sum = std::accumulate(values_.begin(), values_.end(), 0.0);
    return values_.empty() ? 0 : sum / double(values_.size());
  }
  double at(double share) {
    if (values_.empty()) return 0;
    const auto nth = values_.begin() + static_cast<long>(share * double(values_.size() - 1));
    std::ranges::nth_element(values_, nth);
    return *nth;
  }

 private:
  std::vector<double> values_;
};

struct Figures {
  Distribution wait;            // seconds in the gateway's queue
  Distribution first_token;     // seconds from arrival
  Distribution estimate_error;  // share of the real wait, where that is over 100 ms
  std::vector<Distribution> tenant_wait;
  std::uint64_t prompt_blocks = 0;
  std::uint64_t shared_blocks = 0;  // that had come before, to whatever replica
  std::uint64_t cached_blocks = 0;
  std::uint64_t answered = 0;
  std::uint64_t moved = 0;  // to another replica, after a death
  std::uint64_t lost = 0;   // with replicas, after its first token
  std::vector<std::uint64_t> replica_tokens;

  // The most that a replica computed, over the mean.
  double unevenness() const {
    double sum = 0;
    std::uint64_t most = 0;
    for (const std::uint64_t tokens : replica_tokens) {
      sum += double(tokens);
      most = std::max(most, tokens);
    }
    return sum > 0 ? double(most) * double(replica_tokens.size()) / sum : 0;
  }
  // The longest p99 wait of a tenant, in seconds.
  double longest_tenant_wait() {
    double longest = 0;
    for (Distribution& tenant : tenant_wait) longest = std::max(longest, tenant.at(0.99));
    return longest;
  }
};

}  // namespace penstock::simulation
