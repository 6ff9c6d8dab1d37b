#include "proxy/delivery.h"

namespace penstock::proxy {

// The last event waits for what the replica's last word says of the answer.
void Delivery::took(More more) {
  taken_ = payload_.size();
  if (!held_end_.empty()) payload_.append(std::exchange(held_end_, {}));
  end_.note(payload_.bytes());
  if (!tells_making_) return;
  if (!names_ && !payload_.empty())
    names_ = std::make_unique<openai::ChunkNames>(openai::chunk_names(payload_.bytes()));
  if (more == More::kNone || !end_.reached()) return;
  held_end_ = payload_.bytes().substr(payload_.size() - end_.bytes());
  payload_.drop_last(held_end_.size());
}

void Delivery::put_before_end(std::string_view event) {
  const std::string last(payload_.bytes().substr(payload_.size() - end_.bytes()));
  payload_.drop_last(last.size());
  payload_.append(event);
  payload_.append(last);
}

void Delivery::break_off(std::string_view event) {
  payload_.drop_last(end_.bytes());
  payload_.append(event);
}

}  // namespace penstock::proxy
