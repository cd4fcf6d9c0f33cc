// Deterministic fuzzing without clang: mutates seeds and feeds them to LLVMFuzzerTestOneInput.
//   driver [iterations=2000] [seed file or folder of them]...
// The same arguments make the same inputs on every machine. An input is written to $EPOCAST_FUZZ_LAST before it runs,
// if that variable is set, so that a crash leaves it behind.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

// std::mt19937_64 is the same everywhere; the standard distributions are not, so only its raw numbers are used.
using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t limit) { return limit == 0 ? 0 : random() % limit; }

std::vector<std::string> built_in_seeds() {
  return {
      "study: vgg16\nworkers: 4\nbatch: {per_worker: 32}\nstrategy: {name: parameter_server, mode: sync}\n",
      "sweep:\n  workers: [1, 2, 4]\n  strategy: [{name: ps, servers: 1}, {name: ring}]\n",
      "layers:\n  - kind: conv\n    kernel: [3, 3]\n  - {kind: fc, out: 4096}\n",
      "t: 2.5 us\nb: 16 GiB\nr: 100 Gb/s\nf: 8.96 TFLOP/s\nn: -1e3\n",
      "a: &x {n: 1}\nb: *x\nc: [&y 1, *y]\n*y : 2\n",
      "text: |\n  block\n  text\nfold: >-\n  folded\n  text\n",
      "q: \"\\x41\\u00e9\\n\\\"\"\ns: 'it''s'\n? key\n: value\n",
      "%YAML 1.2\n---\n# comment\na: ~\nb:\nc: null\n...\n",
      "[[[[1, 2], {a: b}], !!str c], - d]",
      "\xef\xbb\xbf{\xc3\xa9: \xe2\x82\xac}",
      "",
  };
}

// Pieces that mean something to a YAML reader: a random byte seldom does.
constexpr std::array<std::string_view, 34> kTokens = {
    "[",     "]",     "{",   "}",  ": ", "- ",     ", ",    "? ",    "#",        "\n",          "\n  ", "\n- ",
    "|\n",   ">\n",   "&a ", "*a", "!",  "!!str ", "\"",    "'",     "\\",       "%",           "@",    "`",
    "---\n", "...\n", "\t",  "\r", "~",  "<<: ",   "1e999", " GB/s", "\xc2\x85", "\xe2\x80\xa8"};

void mutate(std::string& text, const std::vector<std::string>& seeds, Random& random) {
  const std::size_t at = below(random, text.size() + 1);
  switch (below(random, 7)) {
    case 0:  // flip a bit
      if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(random, 8)));
      break;
    case 1:  // any byte
      text.insert(at, 1, static_cast<char>(below(random, 256)));
      break;
    case 2:  // a token
      text.insert(at, kTokens[below(random, kTokens.size())]);
      break;
    case 3:  // truncate
      text.resize(at);
      break;
    case 4:  // remove a stretch
      text.erase(at, 1 + below(random, 8));
      break;
    case 5: {  // repeat a stretch, seldom very often: nesting and aliases need depth
      const std::string piece = text.substr(at, 1 + below(random, 12));
      const std::size_t times = below(random, 20) == 0 ? 2000 : 1 + below(random, 4);
      std::string repeated;
      for (std::size_t i = 0; i < times; ++i) repeated += piece;
      text.insert(at, repeated);
      break;
    }
    default: {  // splice: our head, another seed's tail
      const std::string& other = seeds[below(random, seeds.size())];
      text.resize(at);
      text += other.substr(below(random, other.size() + 1));
      break;
    }
  }
  constexpr std::size_t kLongest = 20'000;
  if (text.size() > kLongest) text.resize(kLongest);
}

/// The files that the arguments name, in the same order everywhere. Those of folders come sorted.
std::vector<fs::path> seed_files(int argc, char** argv) {
  std::vector<fs::path> files;
  for (int i = 2; i < argc; ++i) {
    if (!fs::is_directory(argv[i])) {
      files.emplace_back(argv[i]);
      continue;
    }
    const auto first = static_cast<std::ptrdiff_t>(files.size());
    for (const fs::directory_entry& entry : fs::directory_iterator(argv[i])) files.push_back(entry.path());
    std::sort(files.begin() + first, files.end());
  }
  return files;
}

void run(const std::string& text) {
  static const char* const last = std::getenv("EPOCAST_FUZZ_LAST");
  if (last != nullptr) std::ofstream(last, std::ios::binary) << text;
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
}

}  // namespace

int main(int argc, char** argv) {
  const long iterations = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 2000;
  std::vector<std::string> seeds = built_in_seeds();
  for (const fs::path& name : seed_files(argc, argv)) {
    std::ifstream file(name, std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "driver: cannot read %s\n", name.c_str());
      return 2;
    }
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  for (const std::string& seed : seeds) run(seed);
  Random random(1);
  for (long i = 0; i < iterations; ++i) {
    std::string text = seeds[below(random, seeds.size())];
    for (std::size_t steps = 1 + below(random, 6); steps > 0; --steps) mutate(text, seeds, random);
    run(text);
  }
  std::printf("driver: %zu seeds, %ld mutations, no failure\n", seeds.size(), iterations);
  return 0;
}
