#include "sim/config.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/temporary_folder.hpp"

namespace epocast::config_test {

namespace {

ConfigNode load(std::string_view text) { return ConfigNode::load_text(text, "f.yaml"); }

// The message of the ConfigError that `action` throws, or "no error".
std::string message(const std::function<void()>& action) {
  try {
    action();
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "no error";
}

std::string load_message(std::string_view text) {
  return message([text] { load(text); });
}

}  // namespace

TEST_CASE("an error message is the parts that are known, joined by colons", "[config]") {
  CHECK(std::string(ConfigError({"a.yaml", 3, 7}, "x.y", "bad").what()) == "a.yaml:3:7: x.y: bad");
  CHECK(std::string(ConfigError({"a.yaml", 3}, "x.y", "bad").what()) == "a.yaml:3: x.y: bad");
  CHECK(std::string(ConfigError({"a.yaml"}, "", "bad").what()) == "a.yaml: bad");
  CHECK(std::string(ConfigError({}, "x", "bad").what()) == "x: bad");
  CHECK(std::string(ConfigError("bad").what()) == "bad");
  const ConfigError error({"a.yaml", 3, 7}, "x.y", "bad");
  CHECK(error.where().line == 3);
  CHECK(error.key_path() == "x.y");
  CHECK(error.problem() == "bad");
}

TEST_CASE("scalars are read with their type", "[config]") {
  const ConfigNode root = load(
      "text: hello world\nquoted: \"16\"\nblock: |\n  two\n  lines\nint: -42\nplus: +7\nbig: 9223372036854775807\n"
      "real: 2.5e-3\nwhole: 3\nyes: true\nno: False\ntime: 2.5 us\nsize: '16 GB'\nrate: 100 Gb/s\nflop: 3 GFLOP\n"
      "flop_rate: 8.96 TFLOP/s\n");
  CHECK(root.at("text").as_string() == "hello world");
  CHECK(root.at("quoted").as_string() == "16");
  CHECK(root.at("block").as_string() == "two\nlines\n");
  CHECK(root.at("int").as_string() == "-42");
  CHECK(root.at("int").as_int() == -42);
  CHECK(root.at("plus").as_int() == 7);
  CHECK(root.at("big").as_int() == 9223372036854775807);
  CHECK(root.at("real").as_double() == 2.5e-3);
  CHECK(root.at("whole").as_double() == 3.0);
  CHECK(root.at("yes").as_bool());
  CHECK_FALSE(root.at("no").as_bool());
  CHECK(root.at("time").as_seconds() == Seconds(2.5e-6));
  CHECK(root.at("size").as_bytes() == Bytes(16e9));
  CHECK(root.at("rate").as_bytes_per_second() == BytesPerSecond(12.5e9));
  CHECK(root.at("flop").as_flop() == Flop(3e9));
  CHECK(root.at("flop_rate").as_flop_per_second() == FlopPerSecond(8.96e12));
  CHECK_NOTHROW(root.check_all_read());
}

TEST_CASE("a value of the wrong type is refused at its own place", "[config]") {
  const ConfigNode root = load("a:\n  b: [1, {c: text}]\nn:\nt: maybe\n");
  const ConfigNode c = root.at("a").at("b").items().at(1).at("c");
  CHECK(message([&] { c.as_int(); }) == "f.yaml:2:14: a.b[1].c: expected a whole number, got 'text'");
  CHECK(message([&] { root.at("a").as_string(); }) == "f.yaml:2:3: a: expected text, got a map");
  CHECK(message([&] { root.at("a").at("b").as_double(); }) == "f.yaml:2:6: a.b: expected a number, got a list");
  CHECK(message([&] { root.at("n").as_string(); }) == "f.yaml:3:1: n: has no value, expected text");
  CHECK(message([&] { root.at("t").as_bool(); }) == "f.yaml:4:4: t: expected true or false, got 'maybe'");
  CHECK(message([&] { root.at("t").items(); }) == "f.yaml:4:4: t: expected a list, got text");
  CHECK(message([&] { root.at("t").keys(); }) == "f.yaml:4:4: t: expected a map, got text");
  CHECK(message([&] { root.at("t").at("x"); }) == "f.yaml:4:4: t: expected a map with the key 'x', got text");
  CHECK(message([&] { root.at("n").at("x"); }) == "f.yaml:3:1: n: has no value, expected a map with the key 'x'");
  CHECK(message([&] { root.at("n").items(); }) == "f.yaml:3:1: n: has no value, expected a list");
}

TEST_CASE("numbers are taken strictly: what one reader takes for 1000 another takes for text", "[config]") {
  for (const char* text : {"4.0", "1.5e0", "1e-1", "1e999", "'1e3'", "e3", "1_000", "0x10", "four", "4 GB", "--4",
                           "+-4", "1,000", "''", "\"4\""}) {
    CAPTURE(text);
    CHECK_THROWS_AS(load(text).as_int(), ConfigError);
  }
  for (const char* text : {".nan", ".inf", "nan", "inf", "-inf", "1e999", "0x10", "1.5.2", "4 s", "'4'", "+-1"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(load(text).as_double(), ConfigError);
  }
  for (const char* text : {"yes", "on", "1", "'true'", "tRUE"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(load(text).as_bool(), ConfigError);
  }
  CHECK(message([] { load("9223372036854775808").as_int(); }) ==
        "f.yaml:1:1: '9223372036854775808' does not fit into 64 bits");
  CHECK(message([] { load("1e19").as_int(); }) == "f.yaml:1:1: '1e19' does not fit into 64 bits");
  CHECK(message([] { load("\"4\"").as_int(); }) == "f.yaml:1:1: expected a whole number, got '4' in quotes");
  CHECK(message([] { load("x: 16").at("x").as_bytes(); }) == "f.yaml:1:4: x: missing unit: write '16 GB', not '16'");
}

TEST_CASE("whole numbers may be written with an exponent", "[config]") {
  CHECK(load("1e6").as_int() == 1'000'000);
  CHECK(load("1.28e6").as_int() == 1'280'000);
  CHECK(load("+3E2").as_int() == 300);
  CHECK(load("-2e0").as_int() == -2);
  CHECK(load("9e15").as_int() == 9'000'000'000'000'000);
  CHECK(load("samples: 1e6").get("samples", 1) == 1'000'000);
  CHECK(message([] { load("n: 1e6").at("n").as_int(Range{1, 1000}); }).find("n: ") != std::string::npos);
  CHECK(message([] { load("n: 1e6").at("n").as_int(Range{1, 1000}); }).find("1e6") != std::string::npos);
}

TEST_CASE("a number out of range names the allowed range, in its unit", "[config]") {
  const ConfigNode root = load("n: 0\nr: 1.5\nt: -3 s\nb: 2 TB\n");
  CHECK(message([&] { root.at("n").as_int({1, 65536}); }) == "f.yaml:1:4: n: must be between 1 and 65536, got 0");
  CHECK(message([&] { root.at("n").as_int({1}); }) == "f.yaml:1:4: n: must be >= 1, got 0");
  CHECK(message([&] { root.at("r").as_double({-1e300, 0.25}); }) == "f.yaml:2:4: r: must be <= 0.25, got 1.5");
  CHECK(message([&] { root.at("t").as_seconds(); }) == "f.yaml:3:4: t: must be >= 0 s, got -3 s");
  CHECK(message([&] {
          root.at("b").as_bytes({0, 1.5 * 1073741824});
        }) == "f.yaml:4:4: b: must be between 0 B and 1.5 GiB, got 2 TB");
  // Limits themselves are allowed.
  CHECK(root.at("n").as_int({0, 0}) == 0);
  CHECK(root.at("t").as_seconds({-3}) == Seconds(-3));
}

TEST_CASE("a default stands in for an absent key and for nothing else", "[config]") {
  const ConfigNode root = load("s: x\nb: true\ni: 3\nd: 0.5\nt: 2 s\nm: 4 KiB\nempty:\nflat: 3\n");
  CHECK(root.get("s", "y") == "x");
  CHECK(root.get("b", false));
  CHECK(root.get("i", 1) == 3);
  CHECK(root.get("i", std::int64_t{1}) == 3);
  CHECK(root.get("d", 1.0) == 0.5);
  CHECK(root.get("t", Seconds(1)) == Seconds(2));
  CHECK(root.get("m", Bytes(1)) == Bytes(4096));
  CHECK(root.get("absent", "y") == "y");
  CHECK(root.get("absent", true));
  CHECK(root.get("absent", 1) == 1);
  CHECK(root.get("absent", 1.5) == 1.5);
  CHECK(root.get("absent", Seconds(1)) == Seconds(1));
  CHECK(root.get("absent", Bytes(1)) == Bytes(1));
  CHECK(message([&] { root.get("empty", 1); }) == "f.yaml:7:1: empty: has no value, expected a whole number");
  CHECK(message([&] { root.get("i", 1, {5, 9}); }) == "f.yaml:3:4: i: must be between 5 and 9, got 3");
  // `flat: 3` where a map belongs would otherwise silently mean "all defaults".
  CHECK(message([&] { root.at("flat").get("x", 1); }) == "f.yaml:8:7: flat: expected a map, got text");
}

TEST_CASE("a missing key is reported at the map, with what the user may have written for it", "[config]") {
  CHECK(message([] { load("a: {b: 1}").at("a").at("servers"); }) == "f.yaml:1:4: a: missing key 'servers'");
  CHECK(message([] { load("a: {sevrers: 1}").at("a").at("servers"); }) ==
        "f.yaml:1:4: a: missing key 'servers' (is 'sevrers' a typo for it?)");
  CHECK(message([] { load("# nothing\n").at("a"); }) == "f.yaml:1:1: has no value, expected a map with the key 'a'");
}

TEST_CASE("a key that nobody read is an error: a typo must not fall back to a default in silence", "[config]") {
  const ConfigNode root = load("workers: 4\nbtach:\n  per_worker: 32\n");
  root.at("workers");
  CHECK_FALSE(root.has("batch"));
  CHECK(message([&] { root.check_all_read(); }) == "f.yaml:2:1: btach: unknown key 'btach' (did you mean 'batch'?)");

  SECTION("keys of a map inside of a list count") {
    const ConfigNode list = load("layers:\n  - kind: conv\n    kernl: 3\n");
    const ConfigNode layer = list.at("layers").items().at(0);
    layer.at("kind");
    layer.has("kernel");
    CHECK(message([&] { list.check_all_read(); }) ==
          "f.yaml:3:5: layers[0].kernl: unknown key 'kernl' (did you mean 'kernel'?)");
  }
  SECTION("a list of scalars is read with its key, a map key by key") {
    const ConfigNode doc = load("list: [1, 2]\nmap: {a: 1, zzzzzz: 2}\n");
    doc.at("list");
    doc.at("map").at("a");
    CHECK(message([&] { doc.check_all_read(); }) == "f.yaml:2:13: map.zzzzzz: unknown key 'zzzzzz' (valid: a)");
    doc.mark_all_read();
    CHECK_NOTHROW(doc.check_all_read());
  }
  SECTION("a key that was only asked about is known, but decided nothing") {
    const ConfigNode doc = load("a: 1");
    CHECK(doc.has("a"));
    CHECK(message([&] { doc.check_all_read(); }) == "f.yaml:1:1: a: key 'a' has no effect here");
  }
  SECTION("copies of a node share the record") {
    const ConfigNode doc = load("a: {b: 1}");
    const ConfigNode copy = doc;
    copy.at("a").at("b");
    CHECK_NOTHROW(doc.check_all_read());
  }
  SECTION("keys() marks nothing") {
    const ConfigNode doc = load("b: 1\na: 2\n");
    CHECK(doc.keys() == std::vector<std::string>{"b", "a"});
    CHECK(message([&] { doc.check_all_read(); }) == "f.yaml:1:1: b: unknown key 'b'");
  }
}

TEST_CASE("a node outlives the handle of the document that it came from", "[config]") {
  const auto leaf = [] { return load("a: {b: [1, 2]}").at("a").at("b").items().at(1); }();
  CHECK(leaf.path() == "a.b[1]");
  CHECK(leaf.as_int() == 2);
  CHECK(leaf.where().column == 12);
}

TEST_CASE("what is not one well-formed YAML document is refused with its place", "[config]") {
  CHECK(load_message("a: 1\nb: 2\na: 3\n") == "f.yaml:3:1: a: duplicate key, first given in line 1");
  CHECK(load_message("m:\n  x: 1\n  x: 1\n") == "f.yaml:3:3: m.x: duplicate key, first given in line 2");
  CHECK(load_message("{a: 1, a: 1}") == "f.yaml:1:8: a: duplicate key, first given in line 1");
  CHECK(load_message("a: [1, 2\n") == "f.yaml:2:1: not valid YAML: expected ',' or ']' (the list starts in line 1)");
  CHECK(load_message("a: {b: 1 c: 2}") ==
        "f.yaml:1:11: not valid YAML: expected ',' or '}' (the map starts in line 1)");
  CHECK(load_message("[1, 2") == "f.yaml:1:1: a map needs text as its key, not a list: is a ']' missing?");
  CHECK(load_message("a: 1\nb: \"x\nc: 1\n") == "f.yaml:2:1: not valid YAML: here or below, a quote is not closed");
  CHECK(load_message("a: 1\n- b\n") ==
        "f.yaml:2:1: not valid YAML: this does not continue what stands above (the map starts in line 1): "
        "check indentation and quotes");
  CHECK(load_message("a: - b") ==
        "f.yaml:1:4: not valid YAML: a '-' where no list item can start: put the text in quotes");
  CHECK(load_message("a: @b") ==
        "f.yaml:1:4: not valid YAML: a value cannot start with this character: put the text in quotes");
  CHECK(
      load_message("a: 1\n b: 2\n") ==
      "f.yaml:2:3: not valid YAML: a ':' that does not follow a key: check the indentation, or put the text in quotes");
  CHECK(load_message("a: 1\n---\nb: 1\n") ==
        "f.yaml:2:1: the document ended above: check the indentation, or remove the '---'");
  CHECK(load_message("a: !!int 3") == "f.yaml:1:4: a: YAML tags are not supported: 'tag:yaml.org,2002:int'");
  CHECK(load_message("m: {[1]: 2}") == "f.yaml:1:5: m: a map needs text as its key, not a list: is a ']' missing?");
  CHECK(load_message("~: 2") == "f.yaml:1:1: a map needs text as its key");
  CHECK(load_message("\"\": 2") == "f.yaml:1:1: an empty key");
  CHECK(load_message("a: b\nc: \xff\n") == "f.yaml:2:4: not UTF-8 text");
  CHECK(load_message(std::string_view("a: \0b", 5)) == "f.yaml:1:4: a NUL byte: this is not a text file");
  CHECK(load_message("a: \"x\\Ny\"") == "f.yaml:1:4: a: the escapes \\N and \\_ are not supported");
  CHECK(load_message("a: *nobody") == "f.yaml:1:4: not valid YAML: the referenced anchor is not defined");
  CHECK_THAT(load_message(std::string(300, 'k') + ": 1"),
             Catch::StartsWith("f.yaml:1:1: a key longer than 200 bytes: 'kkk"));
  // A mark at the start of UTF-8 text, comments, directives and an end marker are all part of one document.
  CHECK(load("\xef\xbb\xbf# c\n%YAML 1.2\n---\na: 1\n...\n").at("a").as_int() == 1);
  CHECK(load("").is_null());
}

TEST_CASE("an anchor's value is repeated by its aliases, each with its own record of reads", "[config]") {
  const ConfigNode root = load("a: &x {n: 1, m: q}\nb: *x\nc: &k name\n*k : 3\n");
  root.at("a").at("n");
  CHECK(root.at("a").at("m").as_string() == "q");
  CHECK(root.at("b").at("n").as_int() == 1);
  CHECK(root.at("name").as_int() == 3);
  root.at("c");
  // The place is the text to edit, the path the key it is used for.
  CHECK(message([&] { root.at("b").at("n").as_int({2}); }) == "f.yaml:1:11: b.n: must be >= 2, got 1");
  CHECK(message([&] { root.check_all_read(); }) == "f.yaml:1:14: b.m: unknown key 'm' (valid: n)");
  CHECK(load_message("a: &x [1, *x]") == "f.yaml:1:11: a: this alias stands inside of the value that it repeats");
}

TEST_CASE("hostile documents end in an error, not in a crash or in all of the memory", "[config]") {
  const auto repeat = [](std::string_view part, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += part;
    return out;
  };
  for (const char* opening : {"[", "{a: ", "- ", "? ", "[a, ", "{", "[{a: "}) {
    for (const int times : {100, 5000, 100'000}) {
      CAPTURE(opening, times);
      CHECK_THROWS_AS(load(repeat(opening, times)), ConfigError);
    }
  }
  CHECK_THAT(load_message(repeat("[", 65) + repeat("]", 65)), Catch::EndsWith("nested deeper than 64 levels"));
  CHECK(load(repeat("[", 64) + repeat("]", 64)).is_list());

  // Each line repeats the one before ten times: 10^10 values from 200 characters.
  std::string laughs = "a0: &a0 x\n";
  for (int i = 1; i <= 10; ++i)
    laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" +
              repeat("*a" + std::to_string(i - 1) + ",", 10) + "]\n";
  CHECK_THAT(load_message(laughs), Catch::EndsWith("more than 1000000 values in one document"));

  // Each line nests the one before: depth from width.
  std::string chain = "a0: &a0 x\n";
  for (int i = 1; i <= 100; ++i)
    chain += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) + "]\n";
  CHECK_THAT(load_message(chain), Catch::EndsWith("nested deeper than 64 levels"));
}

TEST_CASE("an override replaces one value in a copy and keeps its own place", "[config]") {
  const ConfigNode root = load("workers: 4\nstrategy: {name: ps, servers: 1}\nflat: 3\nempty:\n");
  const ConfigNode value = ConfigNode::load_text("0", "--set strategy.servers=0");
  const ConfigNode edited = root.with("strategy.servers", value);

  CHECK(root.at("strategy").at("servers").as_int() == 1);
  CHECK(edited.at("strategy").at("servers").as_int() == 0);
  CHECK(edited.keys() == root.keys());
  CHECK(edited.at("strategy").keys() == std::vector<std::string>{"name", "servers"});
  CHECK(message([&] { edited.at("strategy").at("servers").as_int({1}); }) ==
        "--set strategy.servers=0:1:1: strategy.servers: must be >= 1, got 0");
  CHECK(message([&] { edited.at("workers").as_int({5}); }) == "f.yaml:1:10: workers: must be >= 5, got 4");

  SECTION("absent maps and keys are created, in their own place") {
    const ConfigNode created = root.with("noise.compute.cv", value);
    CHECK(created.at("noise").at("compute").at("cv").as_int() == 0);
    const ConfigNode typo = load("workers: 4").with("wrokers", value);
    typo.at("workers");
    CHECK(message([&] { typo.check_all_read(); }) ==
          "--set strategy.servers=0:1:1: wrokers: unknown key 'wrokers' (did you mean 'workers'?)");
    CHECK(root.with("empty.x", value).at("empty").at("x").as_int() == 0);
    CHECK(load("").with("a.b", value).at("a").at("b").as_int() == 0);
  }
  SECTION("a whole map replaces a value; its inner values have the new path") {
    const ConfigNode map =
        ConfigNode::load_text("x: [{name: pipeline, stages: 0}]", "sweep.yaml").at("x").items().at(0);
    const ConfigNode swept = root.with("strategy", map);
    CHECK_FALSE(swept.at("strategy").has("servers"));
    CHECK(message([&] { swept.at("strategy").at("stages").as_int({1}); }) ==
          "sweep.yaml:1:30: strategy.stages: must be >= 1, got 0");
  }
  SECTION("nothing in the copy counts as read") {
    root.mark_all_read();
    CHECK_THROWS_AS(root.with("workers", value).check_all_read(), ConfigError);
  }
  SECTION("a copy of an inner node remembers its path") {
    CHECK(root.at("strategy").with("servers", value).at("servers").path() == "strategy.servers");
  }
  SECTION("a path through something that is not a map is an error") {
    CHECK(message([&] { root.with("flat.x", value); }) ==
          "--set strategy.servers=0:1:1: flat.x: 'flat' is text, not a map, so 'x' cannot be set in it");
    CHECK(message([&] { load("[1]").with("x", value); }) ==
          "--set strategy.servers=0:1:1: x: the document is a list, not a map, so 'x' cannot be set in it");
    CHECK(message([&] { root.with("a..b", value); }) ==
          "--set strategy.servers=0:1:1: a..b: 'a..b' is not a key: expected names joined by dots");
    CHECK_THROWS_AS(root.with("", value), ConfigError);
    std::string deep = "a";
    for (int i = 0; i < 100; ++i) deep += ".a";
    CHECK_THROWS_AS(root.with(deep, value), ConfigError);
  }
}

TEST_CASE("without() drops a top-level key from a copy", "[config]") {
  const ConfigNode root = load("a: 1\nsweep: {b: [1]}\nc: {sweep: 2}\n");
  const ConfigNode cut = root.without("sweep");
  CHECK(cut.keys() == std::vector<std::string>{"a", "c"});
  CHECK(cut.at("c").has("sweep"));
  CHECK(root.has("sweep"));
  CHECK(root.without("absent").keys() == root.keys());
  CHECK(cut.with("c", load("5")).at("c").as_int() == 5);
}

TEST_CASE("flow text is one line that reads back as the same document", "[config]") {
  struct Flow {
    const char* yaml;
    const char* flow;
  };
  for (const auto& [yaml, flow] : std::vector<Flow>{
           {"name: parameter_server\nmode: async\n", "{name: parameter_server, mode: async}"},
           {"- 1\n- 2.5 us\n- [a, b]\n", "[1, 2.5 us, [a, b]]"},
           {"a:\nb: ~\n", "{a: null, b: null}"},
           {"{}", "{}"},
           {"[]", "[]"},
           {"'16'", "\"16\""},
           {"'true'", "\"true\""},
           {"'null'", "\"null\""},
           {"'~'", "\"~\""},
           {"''", "\"\""},
           {"'name'", "name"},
           {"-3", "-3"},
           {"'- a'", "\"- a\""},
           {"\"a: b, [c] #d\"", "\"a: b, [c] #d\""},
           {"\"q\\\"\\\\\\n\\t\\x01\"", "\"q\\\"\\\\\\n\\t\\x01\""},
           {"'x y: z': 1", "{\"x y: z\": 1}"},
       }) {
    CAPTURE(yaml);
    const std::string text = load(yaml).flow_text();
    CHECK(text == flow);
    CHECK(load(text).flow_text() == text);
  }
}

TEST_CASE("files that cannot be read are refused by name", "[config]") {
  const testing::TemporaryFolder folder;
  const auto file = folder.write("study.yaml", "workers: 4\n");
  CHECK(ConfigNode::load_file(file).at("workers").as_int() == 4);
  CHECK(ConfigNode::load_file(file).where().file == file.string());
  CHECK(message([&] { ConfigNode::load_file(folder.path()); }) ==
        folder.path().string() + ": is a directory, not a file");
  const auto absent = folder.path() / "absent.yaml";
  CHECK(message([&] { ConfigNode::load_file(absent); }) == absent.string() + ": no such file");
}

TEST_CASE("long and unprintable text is shortened in messages", "[config]") {
  const std::string text = message([] { load("\"\\e[31m" + std::string(500, 'x') + "\"").as_bool(); });
  CHECK(text.size() < 200);
  CHECK_THAT(text, Catch::Contains("\\x1b[31mxxx") && Catch::Contains("...' in quotes"));
}

}  // namespace epocast::config_test
