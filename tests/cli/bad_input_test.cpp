// Whatever a user gives, the answer is exit code 2 and one line that says where, what and what to do instead. The
// inputs are in bad_inputs.txt; here is what holds for all of them.

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "tests/cli/program.hpp"

namespace epocast::bad_input_test {

using namespace epocast::test;

namespace {

struct BadFile {
  std::string name;
  std::string text;
};

/// One entry of the table; see the head of bad_inputs.txt.
struct BadInput {
  std::string name;
  std::vector<std::string> arguments{"run", "study.yaml"};
  bool validate = true;  ///< whether `validate study.yaml` must say the same
  std::string expect;
  std::vector<std::string> says;
  std::vector<BadFile> files;
};

const std::string kBase = "study: bad\nplatform: skylake_10gbe\nmodel: mlp_mnist\nworkers: 2\n";
const std::string kXml =
    "<?xml version=\"1.0\"?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform "
    "version=\"4.1\">\n";
const std::string kFigures =
    "<prop id=\"epocast.device_model\" value=\"a CPU\"/><prop id=\"epocast.memory\" value=\"16 GB\"/>"
    "<prop id=\"epocast.memory_bandwidth\" value=\"100 GB/s\"/>\n";

/// A line of a file in the table, with what its @ stands for.
std::string expand(const std::string& line) {
  if (line == "@base") return kBase;
  if (line == "@xml") return kXml;
  if (line == "@figures") return kFigures;
  if (line == "@kernels")
    return "# device: d\n# source: s\n# precision: fp32\n# peak_rate: 1 TFLOP/s\n# memory_bandwidth: 100 GB/s\n"
           "# units: 10\n";
  if (line == "@network") return "# device: d\n# interconnect: i\n# source: s\n";
  std::istringstream words(line);
  std::string word;
  words >> word;
  if (word == "@hex") {
    std::string bytes;
    for (unsigned byte = 0; words >> std::hex >> byte;) bytes += static_cast<char>(byte);
    return bytes;
  }
  if (word == "@repeat") {
    std::size_t times = 0;
    std::string text, all;
    words >> times >> text;
    for (std::size_t i = 0; i < times; ++i) all += text;
    return all + '\n';
  }
  return line + '\n';
}

std::vector<BadInput> read_table() {
  std::ifstream in(EPOCAST_SOURCE_DIR "/tests/cli/bad_inputs.txt");
  std::vector<BadInput> table;
  const auto after = [](const std::string& line, std::string_view head) { return line.substr(head.size()); };
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("== ")) {
      const std::string name = after(line, "== ");
      if (std::ranges::find(table, name, &BadInput::name) != table.end())  // Catch2 would run the first only
        throw std::runtime_error("bad_inputs.txt: two are called '" + name + "'");
      table.emplace_back().name = name;
    } else if (table.empty()) {
      continue;  // the head
    } else if (line.starts_with("-- ")) {
      table.back().files.push_back({after(line, "-- "), ""});
    } else if (!table.back().files.empty()) {
      if (!line.empty()) table.back().files.back().text += expand(line);
    } else if (line.starts_with("args:")) {
      table.back().validate = false;
      table.back().arguments = line == "args:" ? std::vector<std::string>{} : split(after(line, "args: "), ' ');
    } else if (line.starts_with("expect: ")) {
      table.back().expect = after(line, "expect: ");
    } else if (line.starts_with("says: ")) {
      table.back().says.push_back(after(line, "says: "));
    } else if (!line.empty()) {
      throw std::runtime_error("bad_inputs.txt: cannot understand '" + line + "'");
    }
  }
  return table;
}

void check_refused(const BadInput& input, const std::vector<std::string>& arguments, const TemporaryFolder& folder) {
  const std::vector<std::string> before = folder.names();
  const ProgramRun run = run_forked(arguments, folder.path());
  CAPTURE(arguments, run.err, run.out, run.signal);
  CHECK(run.exit_code == 2);
  CHECK(run.out.empty());
  CHECK(folder.names() == before);  // no result, not even half of one
  CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
  CHECK(run.err.ends_with('\n'));
  CHECK(run.err.starts_with(input.expect));
  for (const std::string& fragment : input.says) CHECK_THAT(run.err, Catch::Contains(fragment));
  CHECK(std::none_of(run.err.begin(), run.err.end() - 1, [](unsigned char c) { return c < 0x20; }));
}

}  // namespace

TEST_CASE("bad input is refused with one line that names the place and the remedy") {
  const std::vector<BadInput> table = read_table();
  REQUIRE(table.size() >= 60);
  for (const BadInput& input : table) {
    DYNAMIC_SECTION(input.name) {
      REQUIRE_FALSE(input.expect.empty());
      const TemporaryFolder folder;
      std::filesystem::create_directory(folder.path() / "a_folder");
      for (const BadFile& file : input.files) folder.write(file.name, file.text);
      check_refused(input, input.arguments, folder);
      // What `run` refuses, `validate` finds without running, and says in the same words.
      if (input.validate) check_refused(input, {"validate", "study.yaml"}, folder);
    }
  }
}

}  // namespace epocast::bad_input_test
