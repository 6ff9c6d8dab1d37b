#include "observe/gzip.h"

#include <zlib.h>

#include <new>

namespace penstock::observe {

std::string gzipped(std::string_view text) {
  constexpr int kGzip = 15 + 16;  // the largest window, and gzip's own head
  constexpr int kMemory = 8;
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
  std::string packed(deflateBound(&stream, text.size()), '\0');
  // zlib reads and does not write what it calls no constant.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);  // there is room for all of it
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace penstock::observe
