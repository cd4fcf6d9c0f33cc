#include "experiments/sweep/scenario_key.hpp"

#include <elf.h>
#include <link.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "experiments/batch/scenario_batches.hpp"
#include "sim/data_directory.hpp"
#include "sim/error.hpp"
#include "sim/fingerprint.hpp"
#include "sim/input_file.hpp"

namespace epocast {
namespace {

/// The note NT_GNU_BUILD_ID of the first module, which is the program.
int find_build_id(dl_phdr_info* module, std::size_t /*size*/, void* out) {
  for (int h = 0; h < module->dlpi_phnum; ++h) {
    const auto& header = module->dlpi_phdr[h];
    if (header.p_type != PT_NOTE) continue;
    const char* at = reinterpret_cast<const char*>(module->dlpi_addr + header.p_vaddr);
    const char* const end = at + header.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const auto padded = [](std::size_t n) { return (n + 3) / 4 * 4; };
      const char* const text = at + sizeof note + padded(note.n_namesz);
      if (note.n_type == NT_GNU_BUILD_ID) *static_cast<std::string*>(out) = std::string(text, note.n_descsz);
      at = text + padded(note.n_descsz);
    }
  }
  return 1;  // no further module
}

bool is_below(const std::filesystem::path& file, const std::filesystem::path& folder, std::string& rest) {
  const std::filesystem::path relative = file.lexically_relative(folder);
  if (relative.empty() || *relative.begin() == "..") return false;
  rest = relative.string();
  return true;
}

std::filesystem::path normal(const std::filesystem::path& folder) {
  std::string text = std::filesystem::absolute(folder.empty() ? "." : folder).lexically_normal().string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

}  // namespace

std::string program_identity(const std::string& version) {
  std::string id;
  dl_iterate_phdr(find_build_id, &id);
  return id.empty() ? version : version + "+" + fingerprint(id).substr(0, 12);
}

ScenarioKey scenario_key(const Scenario& scenario, const std::string& program, const RunOptions& options) {
  const ConfigNode config = scenario.config();
  std::string text = program + (options.exact ? " exact" : "") + (options.fold ? "" : " unfolded") +
                     (scenario.usual_stack ? " usual stack" : "") + '\n';
  for (const std::string& key : config.keys())
    if (key != "description") text += key + ": " + config.at(key).flow_text() + '\n';
  for (const auto& [axis, label] : scenario.axes) text += axis + '=' + label + '\n';  // columns of the row
  return {fingerprint(text), network_group(config)};
}

InputNames::InputNames(const std::filesystem::path& study) : data_(normal(data_directory())), study_(normal(study)) {}

std::string InputNames::named(const std::string& files) const {
  nlohmann::json out = nlohmann::json::object();
  const nlohmann::json read = nlohmann::json::parse(files);
  for (const auto& [path, print] : read.items()) {
    std::string rest;
    if (is_below(path, data_, rest))
      out["data:" + rest] = print;
    else if (is_below(path, study_, rest))
      out["study:" + rest] = print;
    else
      out[path] = print;
  }
  return out.dump();
}

std::filesystem::path InputNames::path_of(const std::string& name) const {
  if (name.starts_with("data:")) return data_ / name.substr(5);
  if (name.starts_with("study:")) return study_ / name.substr(6);
  return name;
}

bool InputNames::unchanged(const std::string& named_files) {
  const nlohmann::json files = nlohmann::json::parse(named_files);
  for (const auto& [name, print] : files.items()) {
    auto now = now_.find(name);
    if (now == now_.end()) {
      std::string found;
      try {
        found = fingerprint(read_input_file(path_of(name)));
      } catch (const ConfigError&) {  // gone: nothing is as it was
      }
      now = now_.emplace(name, found).first;
    }
    if (now->second != print.get<std::string>()) return false;
  }
  return true;
}

}  // namespace epocast
