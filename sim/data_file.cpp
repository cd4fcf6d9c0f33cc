#include "sim/data_file.hpp"

#include <algorithm>
#include <system_error>

namespace epocast {

namespace fs = std::filesystem;

fs::path find_data_file(const ConfigNode& value, const DataFileKind& kind) {
  const std::string name = value.as_string();
  std::error_code ignored;  // a path too long for the system is a file that is not there
  const fs::path folder = fs::path(value.where().file).parent_path();
  if (name.find('/') == std::string::npos && !name.ends_with(kind.extension)) {
    const fs::path shipped = kind.folder / (name + kind.extension);
    if (!name.empty() && fs::is_regular_file(shipped, ignored)) return shipped;
    const std::string file = name + kind.extension;
    if (!name.empty() && (fs::is_regular_file(folder / file, ignored) || fs::is_regular_file(file, ignored)))
      throw value.error("unknown " + kind.kind + " '" + name + "' (did you mean the file '" + file + "'?)");
    std::vector<std::string> names = data_file_names(kind.folder, kind.extension);
    names.insert(names.end(), kind.others.begin(), kind.others.end());
    std::ranges::sort(names);
    throw value.error("unknown " + kind.kind + " '" + name + "'" + name_hint(name, names) + "; or give a path to a " +
                      kind.extension + " file");
  }
  const fs::path beside = folder / name;
  for (const fs::path& candidate : {beside, fs::path(name)})
    if (fs::is_regular_file(candidate, ignored)) return candidate;
  throw value.error("there is no " + kind.kind + " file '" + name +
                    "', neither beside this file nor in the current directory");
}

std::vector<std::string> data_file_names(const fs::path& folder, const std::string& extension) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().extension() == extension) names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

}  // namespace epocast
