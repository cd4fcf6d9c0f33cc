#pragma once
// Keeps what `reproduce` and `calibrate` found in a store.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace epocast {

/// Stores rows, JSON objects, of one target or device. `version`: of the program. Throws as ResultStore does.
void store_records(const std::filesystem::path& store, const std::string& kind, const std::string& name,
                   const std::string& version, const std::vector<nlohmann::ordered_json>& rows);

}  // namespace epocast
