// What stands in users' files may be anything; what is said about it is a line that people read.

#include "sim/text.hpp"

#include <catch2/catch.hpp>

#include "sim/error.hpp"

namespace epocast::text_test {

TEST_CASE("what a terminal cannot show is escaped", "[text]") {
  CHECK(printable("plain, \xc3\xa9, \xe2\x82\xac") == "plain, \xc3\xa9, \xe2\x82\xac");
  CHECK(printable("a\nb\tc\x1b[31m") == "a\\nb\\x09c\\x1b[31m");
  CHECK(printable("\xff and \xc3") == "\\xff and \\xc3");
  CHECK(printable("\xc2\x9b") == "\\xc2\\x9b");           // U+009B starts escape sequences, as ESC [ does
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // half of a surrogate pair
}

TEST_CASE("long words keep their ends, long texts too", "[text]") {
  const std::string word(200, 'a');
  CHECK(abridged(word) == word);
  CHECK(abridged("see " + std::string(2000, 'x') + " there") ==
        "see " + std::string(80, 'x') + "..." + std::string(40, 'x') + " there");
  // Characters of two bytes are not cut in half: 80 bytes after one of a single byte end inside of the 40th.
  std::string accents = "a";
  for (int i = 0; i < 200; ++i) accents += "\xc3\xa9";
  CHECK(printable(abridged(accents)) == abridged(accents));
  std::string words;
  for (int i = 0; i < 5000; ++i) words += "word ";
  CHECK(abridged(words + "the end").size() < 2000);
  CHECK(abridged(words + "the end").ends_with("the end"));
}

TEST_CASE("a message about bad input is one readable line", "[text]") {
  const ConfigError error(Location{"study\n.yaml", 3, 4}, "model", "unknown '" + std::string(2000, 'm') + "\xff'");
  const std::string message = error.what();
  CHECK(message.starts_with("study\\n.yaml:3:4: model: unknown 'mmm"));
  CHECK(message.ends_with("m\\xff'"));
  CHECK(message.size() < 300);
}

}  // namespace epocast::text_test
