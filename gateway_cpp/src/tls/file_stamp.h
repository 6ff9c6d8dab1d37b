// What tells one version of a file from another without reading it.
#pragma once

#include <cstdint>
#include <string>

namespace penstock::tls {

struct FileStamp {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t size = -1;  // there is no such file
  int64_t changed_ns = 0;
  bool operator==(const FileStamp&) const = default;
};

// Of the file that a link leads to, so that moving the link counts as a change.
FileStamp stamp_of(const std::string& path);

}  // namespace penstock::tls
