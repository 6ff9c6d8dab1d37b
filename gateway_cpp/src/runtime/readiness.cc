#include "runtime/readiness.h"

#include <cerrno>
#include <system_error>
#include <utility>

namespace penstock::runtime {

namespace {

constexpr uint32_t kEverything = EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLRDHUP | EPOLLET;

int new_epoll() {
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0) throw std::system_error(errno, std::generic_category(), "epoll_create1");
  return epoll;
}

uint64_t key_of(uint32_t slot, uint32_t generation) {
  return static_cast<uint64_t>(generation) << 32U | slot;
}

}  // namespace

Readiness::Registration::Registration(Registration&& other) noexcept
    : readiness_(std::exchange(other.readiness_, nullptr)), slot_(other.slot_) {}

Readiness::Registration& Readiness::Registration::operator=(Registration&& other) noexcept {
  if (this == &other) return *this;
  end();
  readiness_ = std::exchange(other.readiness_, nullptr);
  slot_ = other.slot_;
  return *this;
}

void Readiness::Registration::end() {
  if (readiness_ != nullptr) std::exchange(readiness_, nullptr)->end(slot_);
}

Readiness::Readiness(asio::io_context& io) : waiting_(io.get_executor(), new_epoll()) { wait(); }

Readiness::Registration Readiness::watch(int descriptor, Watcher& watcher) {
  const uint32_t number = free_slot();
  Slot& slot = slots_[number];
  epoll_event wanted{};
  wanted.events = kEverything;
  wanted.data.u64 = key_of(number, slot.generation);
  if (::epoll_ctl(waiting_.native_handle(), EPOLL_CTL_ADD, descriptor, &wanted) != 0) return {};
  free_.pop_back();
  slot.watcher = &watcher;
  slot.descriptor = descriptor;
  return {*this, number};
}

// The last of those that are free, which there are from here on.
uint32_t Readiness::free_slot() {
  if (free_.empty()) {
    slots_.emplace_back();
    free_.reserve(slots_.capacity());
    free_.push_back(static_cast<uint32_t>(slots_.size() - 1));
  }
  return free_.back();
}

void Readiness::end(uint32_t slot) {
  Slot& ended = slots_[slot];
  ::epoll_ctl(waiting_.native_handle(), EPOLL_CTL_DEL, ended.descriptor, nullptr);
  ended = Slot{.generation = ended.generation + 1};
  free_.push_back(slot);
}

// Completes for as long as there is news that nobody has been told, however old it is.
void Readiness::wait() {
  waiting_.async_wait(Waiting::wait_read, [this](boost::system::error_code ec) {
    if (ec) return;
    tell();
    wait();
  });
}

void Readiness::tell() {
  const int count = ::epoll_wait(waiting_.native_handle(), news_.data(), kToldAtOnce, 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& one = news_[static_cast<size_t>(i)];
    Watcher* const watcher = watcher_of(one.data.u64);
    if (watcher != nullptr) watcher->on_ready(one.events);
  }
}

// Null: it has ended meanwhile, and another may have its slot.
Readiness::Watcher* Readiness::watcher_of(uint64_t key) const {
  const Slot& slot = slots_[static_cast<uint32_t>(key)];
  return slot.generation == static_cast<uint32_t>(key >> 32U) ? slot.watcher : nullptr;
}

}  // namespace penstock::runtime
