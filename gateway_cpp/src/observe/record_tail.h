// Records as they end, for somebody who follows them: what he does not take in time is left out and
// counted. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "observe/record_filter.h"

namespace penstock::observe {

class RecordTail {
 public:
  RecordTail(v1::RequestFilter filter, std::function<void()> wake)
      : filter_(std::move(filter)), wake_(std::move(wake)) {}

  // The store's: one has ended. Where there is no room for it, it is not looked into either, and
  // counted as if it were of that deployment and that reason.
  void offer(const RecordFacts& facts, std::string_view bytes) {
    if (!may_match(filter_, facts)) return;
    {
      const std::lock_guard lock(mutex_);
      if (bytes_ + bytes.size() > kMostBytes) {
        ++left_out_;
        return;
      }
      bytes_ += bytes.size();
      waiting_.emplace_back(bytes);
    }
    wake_();
  }

  struct News {
    std::deque<std::string> records;  // the oldest first
    std::uint64_t left_out = 0;       // besides, since the last: at most, see offer
  };
  News take() {
    const std::lock_guard lock(mutex_);
    bytes_ = 0;
    return {std::exchange(waiting_, {}), std::exchange(left_out_, 0)};
  }
  const v1::RequestFilter& filter() const { return filter_; }

 private:
  static constexpr std::size_t kMostBytes = std::size_t{1} << 20U;

  const v1::RequestFilter filter_;
  const std::function<void()> wake_;
  std::mutex mutex_;  // guards all below
  std::deque<std::string> waiting_;
  std::size_t bytes_ = 0;
  std::uint64_t left_out_ = 0;
};

}  // namespace penstock::observe
