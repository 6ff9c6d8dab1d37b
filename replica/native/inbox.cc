#include "inbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <system_error>

namespace penstock::replica {

Inbox::Inbox(size_t capacity_bytes)
    : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), capacity_(capacity_bytes) {
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

Inbox::~Inbox() { close(fd_); }

void Inbox::post(Kind kind, uint64_t key, std::string payload) {
  bool first = false;
  {
    std::lock_guard lock(mutex_);
    first = items_.empty();
    bytes_ += payload.size();
    items_.push_back({kind, key, std::move(payload)});
  }
  // Cannot fail: the counter is far from full, and the descriptor is ours.
  if (first) [[maybe_unused]]
    const int written = eventfd_write(fd_, 1);
}

std::vector<Inbox::Item> Inbox::drain() {
  std::vector<Item> items;
  eventfd_t count = 0;
  // Nothing to read means that an earlier drain took the items that this wake-up was for.
  [[maybe_unused]] const int read = eventfd_read(fd_, &count);
  std::vector<std::function<void()>> waiting;
  {
    std::lock_guard lock(mutex_);
    items.swap(items_);
    bytes_ = 0;
    waiting.swap(waiting_);
  }
  for (const auto& go_on : waiting) go_on();
  return items;
}

bool Inbox::full() const {
  std::lock_guard lock(mutex_);
  return bytes_ >= capacity_;
}

bool Inbox::wait_for_room(std::function<void()> go_on) {
  std::lock_guard lock(mutex_);
  if (bytes_ < capacity_) return false;
  waiting_.push_back(std::move(go_on));
  return true;
}

}  // namespace penstock::replica
