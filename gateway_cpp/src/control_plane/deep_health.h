// What replicas last answered to Health deep. They are asked when somebody looks, each at most
// every ten seconds, and behind all calls; who looks is told what is known by then and waits for
// nothing. Knows no head. Owned by main; any thread.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace penstock::control_plane {

struct DeepTarget {
  std::string replica_id;
  std::string address;  // host:port of its Inference service
  bool own_token = false;
};

struct DeepAnswer {
  enum class Verdict : std::uint8_t { kUnknown, kWell, kUnwell };
  Verdict verdict = Verdict::kUnknown;  // none yet, or none in ten minutes
  std::string detail = {};              // for a person
  std::chrono::microseconds took{0};    // the work that it was asked for
  base::SteadyTime at = {};             // when it answered
};

class DeepHealth {
 public:
  // What proves to a replica that we may ask it; empty: nothing.
  using TokenFor = std::string (*)(const std::string& cluster_token, const DeepTarget& replica);

  DeepHealth(const base::Clock& clock, std::string cluster_token, TokenFor token_for);
  DeepHealth(const DeepHealth&) = delete;
  DeepHealth& operator=(const DeepHealth&) = delete;
  ~DeepHealth();

  // One answer for each, in this order.
  std::vector<DeepAnswer> look(const std::vector<DeepTarget>& replicas);

 private:
  struct Asked;
  struct Known {
    DeepAnswer answer;
    base::SteadyTime asked{};  // the last time
    bool waits = false;        // is asked now, or about to be
    std::shared_ptr<Asked> under_way = nullptr;
  };
  using Key = std::pair<std::string, std::string>;  // replica id, address

  void wish_for(const DeepTarget& replica, base::SteadyTime now);
  void hear();
  void ask_all();
  void note(const Asked& asked);
  void forget_old(base::SteadyTime now);

  const base::Clock& clock_;
  const std::string cluster_token_;
  const TokenFor token_for_;
  grpc::CompletionQueue answers_;

  std::mutex mutex_;  // guards all below
  grpc::Alarm bell_;  // rings for the thread once there are wishes
  bool stopping_ = false;
  std::map<Key, Known> known_;
  base::SteadyTime forgets_at_{};  // not before, what is old
  std::vector<DeepTarget> wishes_;
  unsigned waiting_ = 0;
  std::thread thread_;  // asks and hears; there is none until somebody has looked
};

}  // namespace penstock::control_plane
