// What the sockets of one I/O thread are ready for. Each is given to the system once, with all that
// may become of it, and from then on its watcher is told of what is new: waiting costs no system
// call. The price is that news comes once. Who was told that there is something to read is not told
// again until more has come, and so keeps it in mind until a read has found nothing left.
//
// The sockets have an epoll of their own, for which the thread's loop waits as for one descriptor.
// That thread only.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <cstdint>
#include <vector>

#include "runtime/awaitable.h"
#include "runtime/descriptor.h"

namespace penstock::runtime {

class Readiness {
 public:
  // How many are told before the others of the thread have their turn.
  static constexpr int kToldAtOnce = 128;

  class Watcher {
   public:
    // `events`: all that holds now, of which something is new: EPOLLIN, EPOLLOUT, EPOLLPRI,
    // EPOLLRDHUP, EPOLLHUP, EPOLLERR. It may have been dealt with already. The watcher may end
    // here, and any other with it.
    virtual void on_ready(uint32_t events) = 0;

   protected:
    ~Watcher() = default;
  };

  // A watcher is told for as long as this lives, and never afterwards. It goes before its
  // descriptor is closed.
  class Registration {
   public:
    Registration() = default;
    Registration(Registration&& other) noexcept;
    Registration& operator=(Registration&& other) noexcept;
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;
    ~Registration() { end(); }

    explicit operator bool() const { return readiness_ != nullptr; }
    // Idempotent.
    void end();

   private:
    friend class Readiness;
    Registration(Readiness& readiness, uint32_t slot) : readiness_(&readiness), slot_(slot) {}

    Readiness* readiness_ = nullptr;
    uint32_t slot_ = 0;
  };

  // Throws std::system_error where the system gives no epoll.
  explicit Readiness(asio::io_context& io);
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;

  // What holds already is told too, a little later. Empty: the system watches no more descriptors,
  // or this is none that can be watched.
  Registration watch(int descriptor, Watcher& watcher);
  Executor executor() { return waiting_.get_executor(); }

 private:
  struct Slot {
    Watcher* watcher = nullptr;
    int descriptor = -1;
    uint32_t generation = 0;  // of those that had the slot, so that old news reaches no new one
  };
  using Waiting = asio::posix::basic_stream_descriptor<Executor>;

  uint32_t free_slot();
  void end(uint32_t slot);
  void wait();
  void tell();
  Watcher* watcher_of(uint64_t key) const;

  Waiting waiting_;  // owns the epoll
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;  // never allocates when a slot comes free
  std::array<epoll_event, kToldAtOnce> news_{};
};

}  // namespace penstock::runtime
