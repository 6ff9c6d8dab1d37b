#include "http/body_pace.h"

#include <algorithm>

#include "http/read_errors.h"

namespace penstock::http {

namespace {

constexpr std::chrono::milliseconds kTick{50};  // that timers may be early by

}  // namespace

void BodyPace::begin() {
  until_ = timers_.now() + whole_;
  begin_stretch();
}

void BodyPace::begin_stretch() {
  stretch_ = std::min(kStretch, left());
  came_ = 0;
  timer_.arm(stretch_);
}

std::chrono::milliseconds BodyPace::left() const {
  return std::chrono::ceil<std::chrono::milliseconds>(until_ - timers_.now());
}

bool BodyPace::is_over() {
  if (!timer_.fired()) return false;
  if (left() < kTick) return true;
  begin_stretch();
  return false;
}

bool BodyPace::is_late() {
  if (!timer_.fired()) return false;
  return came_ < least() || is_over();
}

base::Error BodyPace::fault() const {
  return left() < kTick ? too_slow("body", whole_) : too_little(came_, least(), stretch_);
}

}  // namespace penstock::http
