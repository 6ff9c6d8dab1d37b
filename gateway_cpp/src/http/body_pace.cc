#include "http/body_pace.h"

#include <algorithm>

#include "http/read_errors.h"

namespace penstock::http {

void BodyPace::begin() {
  left_ = whole_;
  begin_stretch();
}

void BodyPace::begin_stretch() {
  stretch_ = std::min(kStretch, left_);
  left_ -= stretch_;
  came_ = 0;
  timer_.arm(stretch_);
}

bool BodyPace::is_over() {
  if (!timer_.fired()) return false;
  if (left_.count() == 0) return true;
  begin_stretch();
  return false;
}

bool BodyPace::is_late() {
  if (!timer_.fired()) return false;
  return (left_.count() > 0 && came_ < least()) || is_over();
}

base::Error BodyPace::fault() const {
  return left_.count() == 0 ? too_slow("body", whole_) : too_little(came_, least(), stretch_);
}

}  // namespace penstock::http
