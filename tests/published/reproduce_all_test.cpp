// Every target, the slow ones included, keeps what it promises.
#include <catch2/catch.hpp>

#include <string>

#include "experiments/fork_pool.hpp"
#include "experiments/reproduce/report.hpp"

using namespace epocast;

TEST_CASE("what a target promises holds", "[long]") {
  const Registries registries = builtin_registries();
  for (const Target& target : builtin_targets()) {
    std::string missed;
    for (const std::string& miss : misses(reproduce(target, {registries, available_processors()})))
      missed += miss + "\n";
    INFO(target.paper << "/" << target.table << "\n" << missed);
    CHECK(missed.empty());
  }
}
