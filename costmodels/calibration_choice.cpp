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
  if (left.empty() || right.empty()) return false;
  return std::ranges::includes(left, right) || std::ranges::includes(right, left);
}

bool serves(Precision measured, Precision asked) {
  const auto narrow = [](Precision p) { return p == Precision::fp16 || p == Precision::bf16; };
  return measured == asked || (narrow(measured) && narrow(asked));
}

std::vector<std::string> calibrations_of(const Device& device, Precision precision,
                                         const std::filesystem::path& folder) {
  std::vector<std::tuple<bool, bool, std::size_t, std::string>> found;
  for (const std::string& name : data_file_names(folder, ".yaml")) {
    const ConfigNode head = head_of(folder / (name + ".yaml"));
    if (head.at("calibration").as_string() != "compute") continue;
    const std::string of = head.at("device").as_string();
    if (!same_chip(of, device.model.text()) || !serves(parse_precision(head.at("precision").as_string()), precision))
      continue;
    found.emplace_back(chips(of) != chips(device.model.text()), head.has("scaled_from"), name.size(), name);
  }
  std::ranges::sort(found);
  std::vector<std::string> out;
  for (const auto& each : found) out.push_back(std::get<std::string>(each));
  return out;
}

}  // namespace epocast
