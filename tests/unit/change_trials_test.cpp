// Which changes of a study are tried, in children, and what is told of them.
#include <catch2/catch.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/change_trials.hpp"

namespace epocast::change_trials_test {
namespace {

struct Tried {
  std::vector<Remedy> remedies;
  std::set<std::string> simulated;
};

/// Memory that children share: which changes they have simulated.
class Marks {
 public:
  Marks() : at_(static_cast<bool*>(mmap(nullptr, kMost, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    if (at_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~Marks() { munmap(at_, kMost); }
  Marks(const Marks&) = delete;
  bool& operator[](std::size_t i) { return at_[i]; }

 private:
  static constexpr std::size_t kMost = 64;
  bool* at_;
};

/// Changes, of which some fit: how long their iterations take.
Tried try_all(const std::vector<StudyChange>& changes, const std::map<std::string, double>& fit, int parallel,
              int begun = 0) {
  Marks marks;
  Tried out;
  ChangeTrials trials(changes, [&](const StudyChange& change) -> std::optional<double> {
    for (std::size_t i = 0; i < changes.size(); ++i)
      if (changes[i].text == change.text) marks[i] = true;
    const auto found = fit.find(change.text);
    return found == fit.end() ? std::nullopt : std::optional(found->second);
  });
  if (begun > 0) trials.begin(begun);
  out.remedies = trials.finish(parallel);
  for (std::size_t i = 0; i < changes.size(); ++i)
    if (marks[i]) out.simulated.insert(changes[i].text);
  return out;
}

std::vector<std::string> names(const std::vector<Remedy>& remedies) {
  std::vector<std::string> out;
  for (const Remedy& remedy : remedies) out.push_back(remedy.text);
  return out;
}

const std::vector<StudyChange> kChanges{{"some", {}, {}},  {"more", {}, {0}}, {"most", {}, {0, 1}},
                                        {"other", {}, {}}, {"one", {}, {}},   {"both", {}, {3, 4}}};

using Names = std::vector<std::string>;
using Set = std::set<std::string>;

}  // namespace

TEST_CASE("a change is tried only where none that is milder fits") {
  for (const int parallel : {1, 2, 8}) {
    const Tried mild = try_all(kChanges, {{"some", 3}, {"more", 4}, {"most", 5}, {"one", 2.5}, {"both", 9}}, parallel);
    CHECK(mild.simulated == Set{"some", "other", "one"});
    CHECK(names(mild.remedies) == Names{"one", "some"});
    const Tried hard = try_all(kChanges, {{"most", 5}, {"both", 4.25}}, parallel);
    CHECK(hard.simulated == Set{"some", "more", "most", "other", "one", "both"});
    CHECK(names(hard.remedies) == Names{"both", "most"});
    CHECK(hard.remedies.front().iteration_s == 4.25);
    CHECK(try_all(kChanges, {}, parallel).remedies.empty());
  }
  for (const int begun : {1, 2, 3}) {
    const Tried hard = try_all(kChanges, {{"most", 5}, {"both", 4.25}}, 2, begun);
    CHECK(hard.simulated == Set{"some", "more", "most", "other", "one", "both"});
    CHECK(names(hard.remedies) == Names{"both", "most"});
  }
}

TEST_CASE("a change whose simulation dies does not fit") {
  for (const int begun : {0, 1, 2}) {
    ChangeTrials trials(kChanges, [](const StudyChange& change) -> std::optional<double> {
      if (change.text == "some") throw std::runtime_error("no such thing");
      return change.text == "more" ? std::optional(0.1) : std::nullopt;
    });
    if (begun > 0) trials.begin(begun);
    const std::vector<Remedy> found = trials.finish(2);
    REQUIRE(names(found) == Names{"more"});
    CHECK(found.front().iteration_s == 0.1);
  }
}

TEST_CASE("changes that nobody waits for are given up") {
  ChangeTrials trials(kChanges, [](const StudyChange&) -> std::optional<double> {
    pause();
    return std::nullopt;
  });
  trials.begin(2);
}

TEST_CASE("no changes, no remedies") {
  ChangeTrials trials({}, [](const StudyChange&) { return std::optional(1.0); });
  trials.begin(1);
  CHECK(trials.finish(2).empty());
}

}  // namespace epocast::change_trials_test
