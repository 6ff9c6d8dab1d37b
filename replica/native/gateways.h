// Which gateways have calls here, and how many. Owned and guarded by the switchboard.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace penstock::replica {

// One gateway, however many sessions it holds.
struct Gateway {
  std::string id;  // empty: that of one session, which did not say whose it is
  uint32_t calls = 0;
  bool had_calls = false;
  std::chrono::steady_clock::time_point last{};  // when its last call ended
};

class Gateways {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // A gateway without calls counts for so long.
  static constexpr std::chrono::seconds kRemembered{10};

  // The gateway of that id; a new one for an empty id.
  std::shared_ptr<Gateway> enter(const std::string& id, Time now);
  static void began(Gateway* gateway);
  static void ended(Gateway* gateway, Time now);
  // How many had calls lately, `self` included, which may be null: nobody's.
  uint32_t count(const Gateway* self, Time now);

 private:
  static bool busy(const Gateway& gateway, Time now);
  void forget(Time now);

  std::vector<std::shared_ptr<Gateway>> known_;
};

}  // namespace penstock::replica
