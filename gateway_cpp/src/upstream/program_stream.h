// The stream between one I/O thread and a router program's process: what the thread asks goes out
// in frames, what the program says comes in. The process is foreign: its frames are bounded, and
// one that makes no sense ends the stream. Its thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "penstock/v1/router.pb.h"

namespace penstock::upstream {

namespace asio = boost::asio;

// Its frames may have so many bytes.
inline constexpr size_t kMostProgramFrameBytes = 256UL * 1024;

class ProgramStream {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // False: it makes no sense. Resumes nobody, and must not let go of the stream.
    virtual bool on_frame(const v1::ProgramFrame& frame) = 0;
    // All frames of one read were handed over.
    virtual void on_turn() = 0;
    // Last and once, never out of a method called here.
    virtual void on_end(std::string_view why) = 0;
  };

  virtual ~ProgramStream() = default;
  // What is put in here leaves with all else of this turn.
  virtual v1::GatewayFrame& outgoing() = 0;
  // Nothing more can be asked on it.
  virtual bool closed_to_asks() const = 0;
  // The owner hears nothing more.
  virtual void close() = 0;
};

// `owner` lives until it has called close() or has heard of the end.
std::shared_ptr<ProgramStream> connect_to_program(asio::io_context& io, const std::string& address,
                                                  const std::string& token,
                                                  ProgramStream::Owner& owner);

}  // namespace penstock::upstream
