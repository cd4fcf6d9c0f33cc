// Whatever a user names as a file is read or refused; nothing hangs and nothing is read without end.

#include "sim/input_file.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "sim/error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace epocast::input_file_test {

TEST_CASE("files are read whole, up to a limit", "[input_file]") {
  const testing::TemporaryFolder folder;
  const std::string text(3 << 20, 'x');
  const auto file = folder.write("f", text);
  CHECK(read_input_file(file) == text);
  CHECK_THROWS_WITH(read_input_file(file, 2 << 20), file.string() + ": larger than 2 MiB");
}

TEST_CASE("what is no file is refused with a remedy", "[input_file]") {
  const testing::TemporaryFolder folder;
  CHECK_THROWS_WITH(read_input_file(""), "a file's name is empty; give a file");
  CHECK_THROWS_WITH(read_input_file("/dev/zero"), "/dev/zero: is a device, not a file; give a file");
  CHECK_THROWS_WITH(read_input_file(folder.path()), folder.path().string() + ": is a directory, not a file");
  CHECK_THROWS_WITH(read_input_file(folder.path() / "none"), Catch::EndsWith("none: no such file"));
  CHECK_THROWS_WITH(read_input_file(folder.path() / std::string(300, 'n')), Catch::EndsWith("n: no such file"));
  const auto pipe = folder.path() / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(read_input_file(pipe), pipe.string() + ": is a pipe to which nobody writes; give a file");
}

TEST_CASE("a pipe is read as a file if somebody writes to it", "[input_file]") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  REQUIRE(::write(ends[1], "study: s\n", 9) == 9);
  ::close(ends[1]);
  CHECK(read_input_file("/dev/fd/" + std::to_string(ends[0])) == "study: s\n");
  ::close(ends[0]);
}

}  // namespace epocast::input_file_test
