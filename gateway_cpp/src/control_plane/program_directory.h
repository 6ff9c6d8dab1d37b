// Where the router programs beside this gateway are to be found: each process writes a file for its
// deployment into one directory. Read by one thread, looked up by any.
//
// What stands in a file is believed no further than that somebody listens there: whoever it is gets
// what a program is asked, and no secret but its own.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "routing/route_table.h"

namespace penstock::control_plane {

// A process that runs programs of one deployment.
struct ProgramSeat {
  std::string address;               // 127.0.0.1:port
  std::string token;                 // that its callers show
  std::vector<std::string> digests;  // of what it runs
  bool operator==(const ProgramSeat&) const = default;

  bool runs(std::string_view digest) const;
};

class ProgramDirectory {
 public:
  // `path`: empty: there are none.
  ProgramDirectory(std::string path, base::Log& log) : path_(std::move(path)), log_(log) {}
  ProgramDirectory(const ProgramDirectory&) = delete;
  ProgramDirectory& operator=(const ProgramDirectory&) = delete;

  // Reads the files of the deployments that have a program. True: there are some. One thread.
  bool look(const routing::Routes& routes);
  // Null: there is none. `uid`: of the deployment.
  std::shared_ptr<const ProgramSeat> find(const std::string& uid) const;

 private:
  struct Entry {
    std::string text;  // of its file, as it was read last
    std::shared_ptr<const ProgramSeat> seat;
  };
  void read(const std::string& uid, Entry& entry);

  const std::string path_;
  base::Log& log_;
  mutable std::mutex mutex_;  // guards entries_
  std::map<std::string, Entry> entries_;
};

// Nothing: the text makes no sense.
std::unique_ptr<ProgramSeat> read_seat(std::string_view text);

}  // namespace penstock::control_plane
