#include "experiments/store/record_writer.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "experiments/store/result_store.hpp"
#include "experiments/sweep/scenario_key.hpp"

namespace epocast {

void store_records(const std::filesystem::path& store, const std::string& kind, const std::string& name,
                   const std::string& version, const std::vector<nlohmann::ordered_json>& rows) {
  const std::string now = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  std::vector<StoredRecord> records;
  for (const nlohmann::ordered_json& row : rows)
    records.push_back({kind, name, program_identity(version), now,
                       row.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)});
  ResultStore(store, ResultStore::Use::write_in_turn).add_records(records);
}

}  // namespace epocast
