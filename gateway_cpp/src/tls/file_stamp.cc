#include "tls/file_stamp.h"

#include <sys/stat.h>

namespace penstock::tls {

FileStamp stamp_of(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return {};
  constexpr int64_t kSecond = 1'000'000'000;
  // Of the inode: whoever keeps a file's own time while writing it cannot keep this one.
  return {.device = facts.st_dev,
          .inode = facts.st_ino,
          .size = facts.st_size,
          .changed_ns = facts.st_ctim.tv_sec * kSecond + facts.st_ctim.tv_nsec};
}

}  // namespace penstock::tls
