// The documentation is true: its commands run and print what it shows, its examples are valid, and it leaves out no
// key, option or column. docs/hacking.md says how pages are written so that this can be checked.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>

#include <sys/wait.h>

#include "tests/cli/program.hpp"

namespace epocast::docs_test {

using namespace epocast::test;
namespace fs = std::filesystem;

namespace {

const fs::path kRoot = EPOCAST_SOURCE_DIR;

/// A fenced block: ```LANGUAGE [FILE [invalid]]
struct Block {
  std::string language, file;
  bool invalid = false;  ///< an example of a mistake
  int number = 0;        ///< of its first line
  std::vector<std::string> lines;

  std::string text() const {
    std::string out;
    for (const std::string& line : lines) out += line + '\n';
    return out;
  }
};

/// Every Markdown file of the documentation, relative to the root.
std::vector<fs::path> pages() {
  std::vector<fs::path> out{"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "benchmarks/README.md"};
  for (const auto& entry : fs::directory_iterator(kRoot / "docs"))
    if (entry.path().extension() == ".md") out.push_back("docs" / entry.path().filename());
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<Block> blocks_of(const fs::path& page) {
  std::vector<Block> blocks;
  bool inside = false;
  int number = 0;
  for (const std::string& line : split(read_file(kRoot / page), '\n')) {
    ++number;
    if (!line.starts_with("```")) {
      if (inside) blocks.back().lines.push_back(line);
      continue;
    }
    inside = !inside;
    if (!inside) continue;
    Block& block = blocks.emplace_back();
    block.number = number;
    std::string last;
    std::istringstream(line.substr(3)) >> block.language >> block.file >> last;
    block.invalid = last == "invalid";
  }
  if (inside) throw std::runtime_error(page.string() + ": the last block does not end");
  return blocks;
}

/// The commands of a block, each on one line.
std::vector<std::string> commands_of(const Block& block) {
  std::vector<std::string> commands;
  bool continues = false;
  for (std::string line : block.lines) {
    const bool more = line.ends_with('\\');
    if (more) line.pop_back();
    if (continues)
      commands.back() += line;
    else if (!line.empty() && !line.starts_with('#'))
      commands.push_back(line);
    continues = more;
  }
  return commands;
}

enum class Kind { program, other, unknown };

/// Whether a command runs epocast, or is one of those that pages may show without this test running them: building,
/// installing, testing, and programs that were built so.
Kind kind_of(const std::string& command) {
  for (const char* building : {"./epocast test", "./epocast fuzz", "./epocast lint"})
    if (command.starts_with(building)) return Kind::other;
  if (command.starts_with("./epocast ")) return Kind::program;
  for (const char* other :
       {"cmake ", "ctest ", "apt-get ", "git ", "cd ", "export ", "build/", "EPOCAST_APPROVE=1 ctest "})
    if (command.starts_with(other)) return Kind::other;
  return Kind::unknown;
}

int expected_exit(const std::string& command) {
  std::smatch match;
  return std::regex_search(command, match, std::regex("# exits ([0-9]+)")) ? std::stoi(match[1]) : 0;
}

/// A folder that looks like the root of the source tree, with `epocast` in place of the script of that name: what
/// commands write lands here.
class Sandbox {
 public:
  explicit Sandbox(const std::vector<Block>& blocks) {
    for (const char* folder : {"platforms", "workloads", "costmodels", "experiments"})
      fs::create_directory_symlink(kRoot / folder, folder_.path() / folder);
    fs::create_symlink(EPOCAST_BINARY, folder_.path() / "epocast");
    for (const Block& block : blocks)
      if (!block.file.empty()) folder_.write(block.file, block.text());
  }

  ProgramRun run(const std::string& command) const {
    folder_.write("command.sh", command + '\n');
    const std::string shell =
        "cd '" + folder_.path().string() + "' && sh command.sh </dev/null >stdout.txt 2>stderr.txt";
    const int status = std::system(shell.c_str());
    ProgramRun run;
    if (WIFEXITED(status)) run.exit_code = WEXITSTATUS(status);
    run.out = read_file(folder_.path() / "stdout.txt");
    run.err = read_file(folder_.path() / "stderr.txt");
    return run;
  }
  fs::path write(const std::string& name, const std::string& text) const { return folder_.write(name, text); }
  const fs::path& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

bool line_matches(const std::string& shown, const std::string& real) {
  if (shown.ends_with(" ...")) return real.starts_with(shown.substr(0, shown.size() - 4));
  return shown == real;
}

/// The first shown line that the output does not have in its place; "" if all is as shown. A line `...` stands for any.
std::string first_difference(const std::vector<std::string>& shown, const std::vector<std::string>& real) {
  std::size_t at = 0;
  bool skipping = false;
  for (const std::string& line : shown) {
    if (line == "...") {
      skipping = true;
      continue;
    }
    while (skipping && at < real.size() && !line_matches(line, real[at])) ++at;
    if (at == real.size() || !line_matches(line, real[at])) return line;
    ++at;
    skipping = false;
  }
  return skipping || at == real.size() ? "" : "(the end; the output goes on with) " + real[at];
}

bool has_word(const std::string& text, const std::string& word) {
  const auto part_of_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || !part_of_word(text[at - 1]);
    const bool ends = at + word.size() == text.size() || !part_of_word(text[at + word.size()]);
    if (begins && ends) return true;
  }
  return false;
}

/// Whether a page has the word as code: `word`, `map.word`, `word: value`, or as a key of an example.
bool documents(const std::string& page, const std::string& word) {
  for (const std::string& form : {"`" + word + "`", "." + word + "`", "`" + word + ":", word + ": "})
    if (page.find(form) != std::string::npos) return true;
  return false;
}

std::string output_of(const std::vector<std::string>& arguments) {
  const ProgramRun run = run_program(arguments, kRoot);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return run.out;
}

/// All matches of the expression's first group.
std::vector<std::string> matches(const std::string& text, const std::string& expression) {
  const std::regex regex(expression, std::regex::ECMAScript | std::regex::multiline);
  std::vector<std::string> out;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) out.push_back((*it)[1]);
  return out;
}

/// Columns of the CSV that a command prints.
std::vector<std::string> columns_of(const std::vector<std::string>& arguments) {
  return csv_fields(split(output_of(arguments), '\n').front());
}

}  // namespace

TEST_CASE("commands in the documentation run, and print what it shows", "[studies]") {
  for (const fs::path& page : pages()) {
    DYNAMIC_SECTION(page.string()) {
      const std::vector<Block> blocks = blocks_of(page);
      const Sandbox sandbox(blocks);
      for (std::size_t b = 0; b < blocks.size(); ++b) {
        if (blocks[b].language != "sh") continue;
        const std::vector<std::string> commands = commands_of(blocks[b]);
        for (std::string command : commands) {
          if (command.starts_with("time ")) command.erase(0, 5);
          CAPTURE(page, blocks[b].number, command);
          REQUIRE(kind_of(command) != Kind::unknown);
          if (kind_of(command) != Kind::program) continue;
          const ProgramRun run = sandbox.run(command);
          CAPTURE(run.out, run.err);
          CHECK(run.exit_code == expected_exit(command));
          const bool shows_output =
              b + 1 < blocks.size() && blocks[b + 1].language == "text" && blocks[b + 1].file.empty();
          if (!shows_output) continue;
          REQUIRE(commands.size() == 1);
          INFO("the page shows something else; if the program is right, copy its output from above");
          CHECK(first_difference(blocks[b + 1].lines, split(run.exit_code == 0 ? run.out : run.err, '\n')).empty());
        }
      }
    }
  }
}

TEST_CASE("studies and models in the documentation are valid") {
  int checked = 0;
  for (const fs::path& page : pages()) {
    const std::vector<Block> blocks = blocks_of(page);
    // The page with a project of its own is tested by tests/consumer: its study needs a strategy that it defines.
    if (std::any_of(blocks.begin(), blocks.end(), [](const Block& b) { return b.file == "CMakeLists.txt"; })) continue;
    const Sandbox sandbox(blocks);
    for (const Block& block : blocks) {
      const std::string text = block.text();
      const bool whole = text.starts_with("study:") || text.starts_with("model:");
      if (block.language != "yaml" || !whole) continue;
      ++checked;
      sandbox.write("block.yaml", text);
      const ProgramRun run = sandbox.run("./epocast validate block.yaml");
      CAPTURE(page, block.number, run.err);
      CHECK(run.exit_code == (block.invalid ? 2 : 0));
    }
  }
  CHECK(checked >= 4);
}

TEST_CASE("links in the documentation lead somewhere, and every page can be reached from the README") {
  for (const fs::path& page : pages()) {
    for (const std::string& link : matches(read_file(kRoot / page), R"(\]\(([^)#:]+)\))")) {
      CAPTURE(page, link);
      CHECK(fs::exists((kRoot / page).parent_path() / link));
    }
  }
  const std::string readme = read_file(kRoot / "README.md");
  for (const fs::path& page : pages()) {
    CAPTURE(page);
    if (page != "README.md") CHECK(readme.find("(" + page.string() + ")") != std::string::npos);
  }
}

TEST_CASE("every key of a study is documented") {
  const std::string page = read_file(kRoot / "docs/study-format.md");
  std::vector<std::string> keys;
  for (const char* source : {"experiments/scenario_reader.cpp", "experiments/study.cpp",
                             "experiments/costs/running_costs.cpp", "costmodels/step_time.cpp"}) {
    const std::string text = read_file(kRoot / source);
    for (const char* reads : {R"re(\b(?:at|has|get)\("([a-z_.]+)")re", R"re(child_or_empty\(\w+, "([a-z_.]+)")re"})
      for (const std::string& key : matches(text, reads)) keys.push_back(key);
  }
  REQUIRE(keys.size() > 30);
  for (const std::string& key : keys) {
    CAPTURE(key);
    CHECK(documents(page, key));
  }
}

TEST_CASE("everything that `list` names is documented, with its parameters") {
  const std::string study_format = read_file(kRoot / "docs/study-format.md");
  for (const char* kind : {"strategies", "cost-models"}) {
    const std::string listed = output_of({"list", kind});
    std::vector<std::string> names = matches(listed, "^([a-z_0-9]+): ");
    REQUIRE(names.size() >= 2);
    for (const std::string& parameter : matches(listed, "^  ([a-z_0-9]+) "))
      if (parameter != "parameter") names.push_back(parameter);
    for (const std::string& name : names) {
      CAPTURE(kind, name);
      CHECK(study_format.find("`" + name + "`") != std::string::npos);
    }
  }
  const std::string collectives = read_file(kRoot / "docs/collectives.md");
  for (const std::string& line : split(output_of({"list", "algorithms"}), '\n')) {
    CAPTURE(line);
    const std::size_t colon = line.find(": ");
    REQUIRE(colon != std::string::npos);
    CHECK(collectives.find("| `" + line.substr(0, colon) + "` | " + line.substr(colon + 2) + " |") !=
          std::string::npos);
  }
  const std::string reproduce = read_file(kRoot / "docs/reproduce.md");
  for (const std::string& target : matches(output_of({"reproduce", "--list"}), "^  ([a-z0-9]+/[a-z_0-9]+) ")) {
    CAPTURE(target);
    CHECK((reproduce.find("## " + target) != std::string::npos ||
           has_word(reproduce, target.substr(target.find('/') + 1))));
  }
}

TEST_CASE("every command, column and property is documented") {
  const std::string study = "experiments/studies/vgg16_skylake.yaml";
  const std::string readme = read_file(kRoot / "README.md");
  const std::string help = output_of({"--help"});
  const std::vector<std::string> commands = matches(help.substr(help.find("Subcommands")), "^  ([a-z]+) ");
  REQUIRE(commands.size() >= 5);
  for (const std::string& command : commands) {
    CAPTURE(command);
    CHECK(readme.find("| `./epocast " + command + " ") != std::string::npos);
  }

  const std::string output = read_file(kRoot / "docs/output.md");
  for (const std::string& column : columns_of({"run", study, "--set", "sweep={}", "--format", "csv"})) {
    CAPTURE(column);
    CHECK(documents(output, column));
  }
  for (const std::string& column : columns_of({"trace", study, "--scenario", "1"})) {
    CAPTURE(column);
    CHECK(documents(output, column));
  }
  const std::string reproduce = read_file(kRoot / "docs/reproduce.md");
  for (const std::string& column : columns_of({"reproduce", "eserol2019/table_5_14", "--format", "csv"})) {
    CAPTURE(column);
    CHECK(has_word(reproduce, column));
  }
  const std::string platforms = read_file(kRoot / "docs/platforms.md");
  for (const std::string& property :
       matches(read_file(kRoot / "platforms/topology.cpp"), R"re("(epocast\.[a-z_]+)")re")) {
    CAPTURE(property);
    CHECK(platforms.find("`" + property + "`") != std::string::npos);
  }
}

}  // namespace epocast::docs_test
