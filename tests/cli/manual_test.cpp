// The manual page and the shells' completions name all commands and options.
#include <catch2/catch.hpp>
#include <cstdio>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/cli/program.hpp"
#include "tests/cli/text.hpp"

namespace epocast::manual_test {

using namespace epocast::test;

namespace {

/// Options that a help text names, and of the whole program its commands.
std::vector<std::string> found_in(const std::string& help, const char* pattern) {
  const std::regex expression(pattern);
  std::set<std::string> words;
  for (std::sregex_iterator it(help.begin(), help.end(), expression), end; it != end; ++it) words.insert((*it)[1]);
  return {words.begin(), words.end()};
}

std::string with_minus_signs(const std::string& text) { return std::regex_replace(text, std::regex("-"), "\\-"); }

/// What bash offers after these words, the last of them being typed.
std::string offered(const std::string& script, const std::string& words, int count) {
  const std::string command = "bash -c 'source \"" + script + "\"; COMP_WORDS=(" + words +
                              "); COMP_CWORD=" + std::to_string(count - 1) + "; _epocast; echo ${COMPREPLY[@]}'";
  std::string out;
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  for (int c = 0; (c = std::fgetc(pipe)) != EOF;) out += static_cast<char>(c);
  CHECK(pclose(pipe) == 0);
  return out;
}

}  // namespace

TEST_CASE("the manual page and the completions name every command and option") {
  const TemporaryFolder folder;
  const std::string manual = run_good({"manual"}, folder).out;
  const std::string bash = run_good({"completion", "bash"}, folder).out;
  const std::string fish = run_good({"completion", "fish"}, folder).out;
  CHECK(run_good({"completion", "zsh"}, folder).out.ends_with(bash));
  CHECK(manual.starts_with(".TH EPOCAST 1"));
  const std::string help = run_good({"--help"}, folder).out;
  const std::vector<std::string> commands = found_in(help.substr(help.find("Subcommands:")), "\n  ([a-z]+)(?: |\n)");
  CHECK(commands.size() >= 15);
  for (const std::string& command : commands) {
    CAPTURE(command);
    CHECK(manual.find(".SS \"" + command) != std::string::npos);
    CHECK(bash.find("      " + command + ") words=") != std::string::npos);
    CHECK(fish.find(" -a " + command + " ") != std::string::npos);
    for (const std::string& option : found_in(run_good({command, "--help"}, folder).out, "  (?:-., ?)?(--[a-z-]+)")) {
      CAPTURE(option);
      if (option != "--help") CHECK(manual.find("\\fB" + with_minus_signs(option) + "\\fP") != std::string::npos);
      CHECK(bash.find(option) != std::string::npos);
      CHECK(fish.find("-l " + option.substr(2) + " ") != std::string::npos);
    }
  }
}

TEST_CASE("bash completes commands and options") {
  const TemporaryFolder folder;
  folder.write("epocast.bash", run_good({"completion", "bash"}, folder).out);
  const std::string script = (folder.path() / "epocast.bash").string();
  CHECK(offered(script, "epocast platf", 2) == "platform\n");
  CHECK(offered(script, "epocast run --unf", 3) == "--unfolded\n");
  CHECK(offered(script, "epocast run study", 3) == "\n");
  const ProgramRun wrong = run_program({"completion", "bsh"}, folder.path());
  CHECK(wrong.exit_code == 2);
  CHECK_THAT(wrong.err, Catch::Contains("did you mean 'bash'?"));
}

}  // namespace epocast::manual_test
