#include "http/chunk_decoder.h"

#include <algorithm>

#include "http/syntax.h"

namespace penstock::http {

size_t ChunkDecoder::feed(std::string_view bytes, std::string& body) {
  size_t used = 0;
  while (state_ == State::kMore && used < bytes.size()) {
    if (at_ == At::kData) {
      used += read_data(bytes.substr(used), body);
    } else {
      step(bytes[used++]);
    }
  }
  return used;
}

size_t ChunkDecoder::read_data(std::string_view bytes, std::string& body) {
  const auto take = static_cast<size_t>(std::min<uint64_t>(left_, bytes.size()));
  body.append(bytes.substr(0, take));
  left_ -= take;
  if (left_ == 0) at_ = At::kDataReturn;
  return take;
}

void ChunkDecoder::step(char c) {
  switch (at_) {
    case At::kSizeBegin:
    case At::kSize:
      return read_size(c);
    case At::kExtension:
      return read_extension(c);
    case At::kSizeEnd:
      if (c != '\n') return refuse("a chunk's size line has a carriage return in it");
      return end_of_size();
    case At::kDataReturn:
      return expect(c, '\r', At::kDataEnd);
    case At::kDataEnd:
      return expect(c, '\n', At::kSizeBegin);
    case At::kLineBegin:
      return begin_line(c);
    case At::kTrailerName:
    case At::kTrailerValue:
      return read_trailer(c);
    case At::kTrailerEnd:
      if (c != '\n') return refuse("a trailer has a carriage return in it");
      at_ = At::kLineBegin;
      return;
    case At::kEnd:
      if (c != '\n') return refuse("the body's last line ends without a line feed");
      state_ = State::kDone;
      return;
    case At::kData:
      return;  // read in one go by read_data()
  }
}

void ChunkDecoder::read_size(char c) {
  if (const int digit = hex_digit(c); digit >= 0) {
    if (++digits_ > kSizeDigits) return refuse("a chunk's size has more than 16 digits");
    left_ = left_ * 16 + static_cast<unsigned>(digit);
    at_ = At::kSize;
  } else if (at_ == At::kSizeBegin) {
    refuse("a chunk's size is not a hexadecimal number");
  } else if (c == ';') {
    at_ = At::kExtension;
  } else if (c == '\r') {
    at_ = At::kSizeEnd;
  } else {
    refuse("a chunk's size line holds characters that do not belong");
  }
}

void ChunkDecoder::read_extension(char c) {
  if (c == '\r') {
    at_ = At::kSizeEnd;
  } else if (is_control(c)) {
    refuse("a chunk's extension holds control characters");
  } else if (++extension_ > kExtensionBytes || ++extensions_ > kExtensionsBytes) {
    refuse("chunk extensions are larger than they may be");
  }
}

void ChunkDecoder::end_of_size() {
  if (left_ > room_) {
    state_ = State::kTooLarge;
    return;
  }
  room_ -= static_cast<size_t>(left_);
  digits_ = extension_ = 0;
  at_ = left_ == 0 ? At::kLineBegin : At::kData;
}

void ChunkDecoder::begin_line(char c) {
  if (c == '\r') {
    at_ = At::kEnd;
    return;
  }
  at_ = At::kTrailerName;
  if (!is_token_character(c)) return refuse("a trailer does not begin with a name");
  read_trailer(c);
}

void ChunkDecoder::read_trailer(char c) {
  if (++trailers_ > kTrailersBytes) return refuse("trailers are larger than they may be");
  if (at_ == At::kTrailerName) {
    if (c == ':') {
      at_ = At::kTrailerValue;
    } else if (!is_token_character(c)) {
      refuse("a trailer's name has characters that do not belong");
    }
  } else if (c == '\r') {
    at_ = At::kTrailerEnd;
  } else if (is_control(c)) {
    refuse("a trailer's value holds control characters");
  }
}

void ChunkDecoder::expect(char c, char wanted, At next) {
  if (c != wanted) return refuse("a chunk is longer or shorter than its size says");
  digits_ = 0;
  at_ = next;
}

void ChunkDecoder::refuse(std::string_view fault) {
  state_ = State::kFault;
  fault_ = fault;
}

}  // namespace penstock::http
