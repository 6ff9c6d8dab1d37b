#include "http/gunzip.h"

#include <zlib.h>

#include <array>
#include <new>

namespace penstock::http {

namespace {

// Each costs a turn, however little it holds; who packs in parallel makes one of each 128 KB.
constexpr unsigned kMostMembers = 1024;
constexpr int kGzipAlone = 15 + 16;  // zlib's words for: the largest window, and a gzip header

}  // namespace

void Gunzip::End::operator()(z_stream_s* stream) const {
  ::inflateEnd(stream);
  delete stream;
}

void Gunzip::begin() {
  auto stream = std::make_unique<z_stream>();
  if (::inflateInit2(stream.get(), kGzipAlone) != Z_OK) throw std::bad_alloc();
  stream_.reset(stream.release());
}

size_t Gunzip::step(std::string_view packed, std::string& out) {
  // Shared by the bodies of a thread: a string that grows by this much would be filled twice.
  static thread_local std::array<char, kStepBytes> unpacked;
  if (!stream_) begin();
  // zlib only reads what it is given.
  stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream_->avail_in = static_cast<uInt>(packed.size());
  stream_->next_out = reinterpret_cast<Bytef*>(unpacked.data());
  stream_->avail_out = static_cast<uInt>(unpacked.size());
  in_member_ |= !packed.empty();
  const int result = ::inflate(stream_.get(), Z_NO_FLUSH);
  const size_t used = packed.size() - stream_->avail_in;
  has_more_ = stream_->avail_out == 0;
  out.append(unpacked.data(), unpacked.size() - stream_->avail_out);
  note(result);
  return used;
}

void Gunzip::note(int result) {
  switch (result) {
    case Z_OK:
    case Z_BUF_ERROR:  // it waits for more bytes
      return;
    case Z_STREAM_END:
      ++members_;
      in_member_ = has_more_ = false;
      if (members_ > kMostMembers) fault_ = "too many members";
      ::inflateReset(stream_.get());
      return;
    case Z_MEM_ERROR:
      throw std::bad_alloc();
    default:
      if (members_ > 0 && stream_->total_out == 0) {
        fault_ = "bytes follow its end that are none";
      } else {
        fault_ = stream_->msg != nullptr ? stream_->msg : "it is corrupt";  // static text of zlib
      }
  }
}

}  // namespace penstock::http
