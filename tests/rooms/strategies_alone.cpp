// All strategies in a program without the engine that could run them; it can be linked, or it says what is missing.
#include <cstdio>

#include "strategies/register.hpp"

int main() {
  const auto names = epocast::builtin_strategies().names();
  std::printf("%zu strategies\n", names.size());
  return names.empty() ? 1 : 0;
}
