#pragma once
// Several simulations in one process, none of which notices the others.

namespace epocast {

/// Makes the engine of this process, if there is one, as it was before its first run, so that what follows is, bit by
/// bit, what it would be in a new process. False if that cannot be: something has failed or is still under way, or this
/// SimGrid keeps its clock to itself and has moved it.
bool restart_engine();

}  // namespace epocast
