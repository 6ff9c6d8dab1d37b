// Any bytes as what a replica says of a call: what is let through can be put on a client's wire and
// reckoned with, what is not is told in words of our own.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/printable.h"
#include "upstream/call_checks.h"
#include "upstream/frame_reader.h"

namespace {

using penstock::upstream::bound;
using penstock::upstream::bounded;
using penstock::upstream::fault_of;
using penstock::upstream::kMostTokens;
using penstock::upstream::Usage;

constexpr std::size_t kLongestFault = 200;
constexpr std::size_t kLongestText = 16UL * 1024;

void require(bool holds) {
  if (!holds) __builtin_trap();
}

// Whether it is to be let through.
bool is_faultless(std::string_view fault) {
  require(fault.size() <= kLongestFault && penstock::base::is_printable_ascii(fault));
  return fault.empty();
}

void check(const penstock::upstream::Head& head) {
  if (!is_faultless(fault_of(head))) return;
  require(head.status == 0 || (head.status / 100 == 2 && head.status != 204));
  require(penstock::base::is_printable_ascii(head.content_type));
  require(std::uint64_t{head.prompt_tokens} + head.cached_tokens <= 2ULL * kMostTokens);
}

void check(const penstock::upstream::Finished& outcome) {
  if (!outcome.usage) return;
  const Usage most = bounded(*outcome.usage);
  require(bounded(most) == most);
  require(!is_faultless(fault_of(outcome)) || most == *outcome.usage);
}

void check(const penstock::upstream::ChunkView& chunk, Usage& seen) {
  if (!is_plausible(chunk, seen)) return;
  seen.completion_tokens += chunk.tokens;
  require(seen.completion_tokens >= chunk.tokens && seen.completion_tokens <= kMostTokens);
}

void check_text(penstock::v1::ErrorDetail error) {
  bound(error);
  require(std::max({error.type().size(), error.code().size(), error.param().size(),
                    error.message().size()}) <= kLongestText);
  const std::string once = error.SerializeAsString();
  bound(error);
  require(error.SerializeAsString() == once);
  penstock::v1::ErrorDetail read;  // protobuf refuses texts that are not UTF-8
  require(read.ParseFromString(once));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view message(reinterpret_cast<const char*>(data), size);
  Usage seen;
  penstock::upstream::FrameReader reader;
  if (!reader.read(message)) return 0;
  for (const auto& event : reader.events()) {
    check(event.chunk, seen);
    if (event.rest == nullptr) continue;
    if (event.rest->head) check(*event.rest->head);
    if (event.rest->finished) check(*event.rest->finished);
    if (event.rest->parsed != nullptr) check_text(event.rest->parsed->failed().error());
  }
  return 0;
}
