#include "costmodels/calibration_choice.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <set>
#include <tuple>

#include "sim/config.hpp"
#include "sim/data_file.hpp"

namespace epocast {
namespace {

constexpr std::size_t kFewestDigits = 3;  // of a number that names a chip, as in RTX 3090

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

bool names_a_chip(const std::string& word) {
  const auto digits = static_cast<std::size_t>(std::ranges::count_if(word, is_digit));
  if (digits == 0 || word.ends_with("gb") || word.starts_with("sxm") || word.starts_with("hbm")) return false;
  const bool is_number = digits == word.size();
  const bool is_count = is_digit(word.front()) && !is_number;  // of sockets, as in 2x
  return is_number ? digits >= kFewestDigits : !is_count;
}

/// As in E5-2698 v3: tells chips of one name apart, and is no name.
bool is_version(const std::string& word) { return word.front() == 'v' && word.size() <= kFewestDigits; }

std::set<std::string> chips(std::string_view device) {
  std::set<std::string> out;
  std::string word;
  for (std::size_t i = 0; i <= device.size(); ++i) {
    const auto c = static_cast<unsigned char>(i < device.size() ? device[i] : ' ');
    if (std::isalnum(c) != 0) {
      word += static_cast<char>(std::tolower(c));
      continue;
    }
    if (!word.empty() && names_a_chip(word)) out.insert(word);
    word.clear();
  }
  return out;
}

/// What stands before the fits, which are long.
ConfigNode head_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string head;
  for (std::string line; std::getline(in, line) && line != "fits:";) head += line + '\n';
  return ConfigNode::load_text(head, file.string());
}

}  // namespace

bool same_chip(std::string_view a, std::string_view b) {
  const std::set<std::string> left = chips(a), right = chips(b);
  if (std::ranges::all_of(left, is_version) || std::ranges::all_of(right, is_version)) return false;
  return std::ranges::includes(left, right) || std::ranges::includes(right, left);
}

bool serves(Precision measured, Precision asked) {
  const auto narrow = [](Precision p) { return p == Precision::fp16 || p == Precision::bf16; };
  return measured == asked || (narrow(measured) && narrow(asked));
}

std::vector<std::string> calibrations_of(const Device& device, Precision precision,
                                         const std::filesystem::path& folder) {
  const std::string model(device.model.text());
  std::vector<std::tuple<bool, bool, std::size_t, std::string>> found;
  for (const std::string& name : data_file_names(folder, ".yaml")) {
    const ConfigNode head = head_of(folder / (name + ".yaml"));
    if (head.at("calibration").as_string() != "compute") continue;
    const std::string of = head.at("device").as_string();
    const bool is_of = of == model || (device.kernels_like.text().empty() && same_chip(of, model));
    if (!is_of || !serves(parse_precision(head.at("precision").as_string()), precision)) continue;
    found.emplace_back(chips(of) != chips(model), head.has("scaled_from"), name.size(), name);
  }
  std::ranges::sort(found);
  std::vector<std::string> out;
  for (const auto& each : found) out.push_back(std::get<std::string>(each));
  return out;
}

std::vector<std::string> stand_ins_for(const Device& device, Precision precision, const std::filesystem::path& folder) {
  Device like;
  like.model = device.kernels_like.text().empty() ? device.model : device.kernels_like;
  std::vector<std::string> out = calibrations_of(like, precision, folder);
  if (precision == Precision::tf32) {
    const std::vector<std::string> narrow = calibrations_of(like, Precision::bf16, folder);
    out.insert(out.end(), narrow.begin(), narrow.end());
  }
  std::erase_if(out, [&](const std::string& name) { return head_of(folder / (name + ".yaml")).has("scaled_from"); });
  return out;
}

}  // namespace epocast
