#include "tls/credentials_watch.h"

#include <string>
#include <utility>

#include "base/date_text.h"

namespace penstock::tls {

CredentialsWatch::CredentialsWatch(CredentialsFiles files, CredentialsTable& table,
                                   const base::Clock& clock, base::Log& log)
    : files_(std::move(files)),
      table_(table),
      clock_(clock),
      log_(log),
      next_look_(clock.steady_now() + kLookEvery),
      made_at_(clock.steady_now()),
      read_(table.current()->stamps()),
      seen_(read_) {
  tell();
}

void CredentialsWatch::look() {
  const auto now = clock_.steady_now();
  if (now < next_look_) return;
  next_look_ = now + kLookEvery;
  const auto before = std::exchange(seen_, files_.stamps());
  const bool changed = seen_ != read_ && seen_ == before;
  if (changed || now - made_at_ >= kTicketKeyLife) reload();
}

void CredentialsWatch::reload() {
  made_at_ = clock_.steady_now();
  read_ = files_.stamps();
  auto loaded = Credentials::load(files_);
  if (!loaded) {
    log_.error("new TLS certificate is not usable: the old one stays",
               {{"error", loaded.error().message},
                {"certificate_ends", base::date_text(table_.current()->facts().not_after)}});
    return;
  }
  table_.replace(std::move(*loaded));
  tell();
}

void CredentialsWatch::tell() const {
  const auto credentials = table_.current();
  const auto& facts = credentials->facts();
  const auto now = clock_.wall_now();
  const std::string begins = base::date_text(facts.not_before);
  const std::string ends = base::date_text(facts.not_after);
  const base::Fields fields = {
      {"file", files_.certificate}, {"names", facts.names}, {"begins", begins}, {"ends", ends}};
  log_.info("TLS certificate in force", fields);
  if (now < facts.not_before || now >= facts.not_after) {
    log_.warning("clients will refuse the TLS certificate: its time is not now", fields);
  }
}

}  // namespace penstock::tls
