// The rules of the folders: who may include whom, and what no file may say.

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace epocast::include_rules_test {

namespace fs = std::filesystem;

namespace {

const fs::path kRoot = EPOCAST_SOURCE_DIR;

// Our own folders that each folder may include from.
const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"sim", {"sim"}},
    {"platforms", {"platforms", "sim"}},
    {"workloads", {"workloads", "sim"}},
    {"costmodels", {"costmodels", "sim"}},
    {"strategies", {"strategies", "sim"}},
    {"learning", {"learning", "sim"}},
    {"experiments", {"experiments", "sim", "platforms", "workloads", "costmodels", "strategies", "learning"}},
};

std::string read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<fs::path> files_in(const fs::path& folder, const std::set<std::string>& extensions) {
  std::vector<fs::path> out;
  for (auto it = fs::recursive_directory_iterator(folder); it != fs::recursive_directory_iterator(); ++it) {
    const std::string name = it->path().filename().string();
    const bool hidden = name.starts_with('.') && name != ".ci";
    if (it->is_directory() && (name == "build" || hidden)) {
      it.disable_recursion_pending();
    } else if (it->is_regular_file() && !hidden && extensions.contains(it->path().extension().string())) {
      out.push_back(it->path());
    }
  }
  std::ranges::sort(out);
  return out;
}

struct Include {
  std::string name;
  bool quoted;
};

std::vector<Include> includes_of(const std::string& text) {
  static const std::regex line(R"re((?:^|\n)[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">])re");
  std::vector<Include> out;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), line); it != std::sregex_iterator(); ++it)
    out.push_back({(*it)[2], (*it)[1] == "\""});
  return out;
}

}  // namespace

TEST_CASE("the search for includes finds both kinds") {
  const std::vector<Include> found =
      includes_of("#include \"sim/a.hpp\"\n  # include <simgrid/s4u.hpp>\n// include <x>\n");
  REQUIRE(found.size() == 2);
  CHECK((found[0].name == "sim/a.hpp" && found[0].quoted));
  CHECK((found[1].name == "simgrid/s4u.hpp" && !found[1].quoted));
}

TEST_CASE("a type's name belongs to one type") {
  // Two headers that define different types of one name make programs that use both wrong, mostly without a diagnostic.
  static const std::regex definition(R"re((?:^|\n)(?:struct|class|enum class) (\w+)(?: final)?(?: :[^;{]*)? \{)re");
  std::map<std::string, std::string> header_of;
  for (const auto& [folder, allowed] : kMayInclude)
    for (const fs::path& file : files_in(kRoot / folder, {".hpp"})) {
      const std::string text = read(file);
      for (auto it = std::sregex_iterator(text.begin(), text.end(), definition); it != std::sregex_iterator(); ++it) {
        const auto [known, added] = header_of.try_emplace((*it)[1], file.string());
        INFO((*it)[1] << " in " << known->second << " and " << file.string());
        CHECK(added);
      }
    }
  CHECK(header_of.size() > 100);
}

TEST_CASE("a file's own constant has no name that a header has") {
  // Files are compiled several at a time: there a file could read the header's value, without a diagnostic.
  static const std::regex constant(
      R"re((?:^|\n)(?:inline |static )?(?:constexpr|const) [^=;(){}\n]*\b(k[A-Z]\w*)\s*[={])re");
  const auto constants = [](const fs::path& file) {
    const std::string text = read(file);
    std::set<std::string> names;
    for (auto it = std::sregex_iterator(text.begin(), text.end(), constant); it != std::sregex_iterator(); ++it)
      names.insert((*it)[1]);
    return names;
  };
  std::map<std::string, std::string> header_of;
  for (const auto& [folder, allowed] : kMayInclude)
    for (const fs::path& file : files_in(kRoot / folder, {".hpp"}))
      for (const std::string& name : constants(file)) header_of[name] = file.string();
  CHECK(header_of.size() > 20);
  for (const auto& [folder, allowed] : kMayInclude)
    for (const fs::path& file : files_in(kRoot / folder, {".cpp"}))
      for (const std::string& name : constants(file)) {
        INFO(name << " in " << file.string() << " and " << header_of[name]);
        CHECK(header_of[name].empty());
      }
}

TEST_CASE("a folder includes only what it may") {
  for (const auto& [folder, allowed] : kMayInclude) {
    const std::vector<fs::path> files = files_in(kRoot / folder, {".hpp", ".cpp"});
    CHECK_FALSE(files.empty());
    for (const fs::path& file : files) {
      for (const Include& include : includes_of(read(file))) {
        if (!include.quoted) continue;
        INFO(fs::relative(file, kRoot).string() << " includes \"" << include.name << "\"");
        CHECK(allowed.contains(include.name.substr(0, include.name.find('/'))));
        CHECK(fs::exists(kRoot / include.name));  // the include root is the repository
      }
    }
  }
}

TEST_CASE("only the module includes SimGrid") {
  int found = 0;
  for (const auto& [folder, allowed] : kMayInclude) {
    for (const fs::path& file : files_in(kRoot / folder, {".hpp", ".cpp"})) {
      const std::string name = fs::relative(file, kRoot).string();
      for (const Include& include : includes_of(read(file))) {
        const bool simgrid = include.name.starts_with("simgrid/") || include.name.starts_with("xbt/") ||
                             include.name.starts_with("smpi/");
        if (!simgrid || include.quoted) continue;
        ++found;
        INFO(name << " includes <" << include.name << ">");
        CHECK(name == "sim/simgrid/simgrid_module.cpp");
      }
    }
  }
  CHECK(found > 0);
}

TEST_CASE("strategies neither print, nor read files, nor touch SimGrid") {
  for (const fs::path& file : files_in(kRoot / "strategies", {".hpp", ".cpp"}))
    for (const Include& include : includes_of(read(file))) {
      INFO(fs::relative(file, kRoot).string() << " includes " << include.name);
      CHECK_FALSE(std::set<std::string>{"iostream", "fstream", "cstdio"}.contains(include.name));
      CHECK_FALSE(include.name.starts_with("sim/simgrid/"));
    }
}

TEST_CASE("no file names a path of one machine") {
  // Put together here, so that this file does not contain them.
  std::vector<std::string> forbidden = {std::string("/ho") + "me/", std::string("/ro") + "ot/",
                                        std::string("/Us") + "ers/"};
  // A checkout in a folder with an everyday name, directly below /, proves nothing.
  const std::string root = kRoot.string();
  if (std::ranges::count(root, '/') > 1) forbidden.push_back(root);
  std::vector<fs::path> files =
      files_in(kRoot, {".hpp", ".cpp", ".txt", ".cmake", ".in", ".json", ".xml", ".yaml", ".md", ".csv", ".html"});
  for (const char* script : {"epocast", ".ci/run"}) files.push_back(kRoot / script);
  for (const fs::path& file : files) {
    const std::string text = read(file);
    for (const std::string& path : forbidden)
      for (std::size_t at = text.find(path); at != std::string::npos; at = text.find(path, at + 1)) {
        // "github.com/home/..." is not a path of a machine.
        const auto before = static_cast<unsigned char>(at == 0 ? ' ' : text[at - 1]);
        INFO(fs::relative(file, kRoot).string() << " contains " << path);
        CHECK((std::isalnum(before) || before == '.' || before == '-' || before == '_' || before == '}'));
      }
  }
}

}  // namespace epocast::include_rules_test
