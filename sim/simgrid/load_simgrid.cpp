#include <dlfcn.h>

#include <stdexcept>

#include "sim/simgrid/simgrid.hpp"

namespace epocast {

namespace {
SimGrid* loaded = nullptr;
}

SimGrid& load_simgrid() {
  if (loaded != nullptr) return *loaded;
  // The program's run path says where it is (sim/CMakeLists.txt). Never closed: SimGrid keeps its state in globals.
  void* const module = dlopen(EPOCAST_SIMGRID_MODULE, RTLD_LAZY | RTLD_LOCAL);
  void* const make = module == nullptr ? nullptr : dlsym(module, "epocast_make_simgrid");
  if (make == nullptr)
    throw std::runtime_error(std::string("cannot load SimGrid (") + dlerror() +
                             "); build epocast anew, or install it with its module " EPOCAST_SIMGRID_MODULE);
  loaded = reinterpret_cast<SimGrid* (*)()>(make)();
  return *loaded;
}

bool simgrid_is_loaded() { return loaded != nullptr; }

}  // namespace epocast
