// What the asyncio loop has to hear of: a queue and an eventfd that the loop watches.
//
// `post` from any thread, without the GIL; it wakes the loop only when the inbox was empty.
// `drain` on the loop's thread, which takes everything at once. What is posted is never refused:
// whoever brings much (requests, with their bodies) asks `wait_for_room` first, and reads no more
// from its client until there is room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace penstock::replica {

class Inbox {
 public:
  // What an item is; its payload in brackets.
  enum class Kind : uint8_t {
    kStart = 0,     // a call for Python to answer (CallRequest)
    kCancel = 1,    // its client is gone
    kRoom = 2,      // its queue has room again
    kHealth = 3,    // a deep health check to be replied to (HealthRequest)
    kAdapters = 4,  // an adapters request to be replied to (AdaptersRequest)
    kDrain = 5,     // a drain request to be replied to (DrainRequest)
    kEvent = 6,     // news of a call that Python made (CallEvent)
    kDied = 7,      // the native engine is dead (the reason)
    kNotice = 8,    // something that an operator has to know (one line for the log)
    kMetrics = 9,   // a request for metrics to be replied to (MetricsRequest)
    kWanted = 10,   // calls wait for an adapter that is not loaded (CallRequest: adapter fields)
    kIdle = 11,     // an adapter is used no longer, of those that were asked about
    kSleep = 12,    // a request to sleep to be replied to (SleepRequest)
    kWake = 13,     // a request to wake up to be replied to (WakeRequest)
    kTokens = 14,   // those of routers, to be replied to (KeepRouterTokensRequest)
  };
  struct Item {
    Kind kind;
    uint64_t key;
    std::string payload;
  };

  // Payloads beyond this wait in their sockets.
  static constexpr size_t kCapacityBytes = 64 << 20;

  explicit Inbox(size_t capacity_bytes = kCapacityBytes);
  ~Inbox();
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  int fd() const { return fd_; }
  void post(Kind kind, uint64_t key, std::string payload = {});
  std::vector<Item> drain();
  bool full() const;
  // True if the inbox is full: `go_on` is then called once, by the next `drain` and on its thread.
  bool wait_for_room(std::function<void()> go_on);

 private:
  const int fd_;
  const size_t capacity_;
  mutable std::mutex mutex_;
  std::vector<Item> items_;
  size_t bytes_ = 0;  // of their payloads
  std::vector<std::function<void()>> waiting_;
};

}  // namespace penstock::replica
