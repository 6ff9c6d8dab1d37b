// Any bytes as a gzip text: read at once and byte by byte they are the same text, or both faulty,
// and no step unpacks more than it may.
#include <cstdint>
#include <string>
#include <string_view>

#include "http/gunzip.h"

namespace {

using penstock::http::Gunzip;

constexpr std::size_t kLimit = 1 << 20;

struct Unpacked {
  std::string text;
  bool whole = false;
  bool faulty = false;
};

Unpacked unpack(std::string_view bytes, std::size_t piece) {
  Gunzip gunzip;
  Unpacked unpacked;
  while ((!bytes.empty() || gunzip.has_more()) && gunzip.fault().empty() &&
         unpacked.text.size() < kLimit) {
    const std::size_t before = unpacked.text.size();
    bytes.remove_prefix(gunzip.step(bytes.substr(0, piece), unpacked.text));
    if (unpacked.text.size() - before > Gunzip::kStepBytes) __builtin_trap();
  }
  unpacked.whole = gunzip.whole();
  unpacked.faulty = !gunzip.fault().empty();
  return unpacked;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Unpacked whole = unpack(bytes, size);
  const Unpacked parts = unpack(bytes, 1);
  if (whole.text.size() >= kLimit || parts.text.size() >= kLimit) return 0;
  const bool same =
      whole.text == parts.text && whole.whole == parts.whole && whole.faulty == parts.faulty;
  if (!same) __builtin_trap();
  return 0;
}
