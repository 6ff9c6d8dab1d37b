#include "control_plane/snapshot_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

namespace penstock::control_plane {
namespace {

// Hashes of keys and salts of caches are for nobody but the gateway's own user.
constexpr mode_t kOwnerOnly = S_IRUSR | S_IWUSR;

// Writes and syncs: after a power cut the renamed file must not be empty. Returns an errno.
int write_synced(const std::filesystem::path& path, std::string_view bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kOwnerOnly);
  if (fd < 0) return errno;
  // One that was left behind keeps the mode that it was made with.
  int failure = ::fchmod(fd, kOwnerOnly) == 0 ? 0 : errno;
  while (!bytes.empty() && failure == 0) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      failure = errno;
    }
  }
  if (failure == 0 && ::fsync(fd) != 0) failure = errno;
  if (::close(fd) != 0 && failure == 0) failure = errno;
  return failure;
}

}  // namespace

SnapshotFile::SnapshotFile(const std::string& directory, const std::string& gateway_id,
                           base::Log& log)
    : log_(log) {
  if (!directory.empty()) {
    path_ = std::filesystem::path(directory) / ("snapshot-" + gateway_id + ".pb");
  }
}

void SnapshotFile::save(const penstock::v1::RouteSnapshot& snapshot) {
  if (path_.empty()) return;
  std::filesystem::path fresh = path_;
  fresh += ".new";
  std::error_code failure;
  std::filesystem::create_directories(path_.parent_path(), failure);
  if (const int error = write_synced(fresh, snapshot.SerializeAsString()); error != 0) {
    failure = std::error_code(error, std::generic_category());
  } else {
    std::filesystem::rename(fresh, path_, failure);
  }
  if (failure) {
    log_.error("the route snapshot could not be kept on disk",
               {{"path", path_.string()}, {"reason", failure.message()}});
  }
}

std::optional<penstock::v1::RouteSnapshot> SnapshotFile::load() {
  if (path_.empty()) return std::nullopt;
  std::ifstream file(path_, std::ios::binary);
  if (!file) return std::nullopt;
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  penstock::v1::RouteSnapshot snapshot;
  // Version 0 is never sent: a file that parses to it is empty or torn.
  if (file.bad() || !snapshot.ParseFromString(bytes) || snapshot.version() == 0) {
    log_.warning("the kept route snapshot cannot be read and is ignored; the next one replaces it",
                 {{"path", path_.string()}, {"bytes", bytes.size()}});
    return std::nullopt;
  }
  return snapshot;
}

}  // namespace penstock::control_plane
