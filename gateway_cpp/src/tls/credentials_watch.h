// Keeps the gateway's credentials those of their files: notices when a file changes, reads both
// anew, and keeps the old ones where the new are no good. Main's thread only.
#pragma once

#include <array>
#include <chrono>

#include "base/clock.h"
#include "base/log.h"
#include "tls/credentials.h"
#include "tls/credentials_table.h"
#include "tls/file_stamp.h"

namespace penstock::tls {

class CredentialsWatch {
 public:
  static constexpr std::chrono::milliseconds kLookEvery{500};
  // The key of session tickets lives as long as the credentials: those of files that never change
  // are made anew so often.
  static constexpr std::chrono::hours kTicketKeyLife{24};

  // `table` holds what was loaded from the files.
  CredentialsWatch(CredentialsFiles files, CredentialsTable& table, const base::Clock& clock,
                   base::Log& log);

  // Reads files that have changed, once they stood still between two looks: the two are written one
  // after the other. To be called often; most calls do nothing.
  void look();
  // Reads them now, because somebody says so.
  void reload();

 private:
  void tell() const;

  const CredentialsFiles files_;
  CredentialsTable& table_;
  const base::Clock& clock_;
  base::Log& log_;
  base::SteadyTime next_look_;
  base::SteadyTime made_at_;
  std::array<FileStamp, 2> read_;  // at the last attempt, for better or worse
  std::array<FileStamp, 2> seen_;  // at the last look
};

}  // namespace penstock::tls
