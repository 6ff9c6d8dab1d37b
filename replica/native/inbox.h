// What the asyncio loop has to hear of: a queue and an eventfd that the loop watches.
//
// `post` from any thread, without the GIL; it wakes the loop only when the inbox was empty.
// `drain` on the loop's thread, which takes everything at once.
#pragma once

#include <cstdint>
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
  };
  struct Item {
    Kind kind;
    uint64_t key;
    std::string payload;
  };

  Inbox();
  ~Inbox();
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  int fd() const { return fd_; }
  void post(Kind kind, uint64_t key, std::string payload = {});
  std::vector<Item> drain();

 private:
  const int fd_;
  std::mutex mutex_;
  std::vector<Item> items_;
};

}  // namespace penstock::replica
