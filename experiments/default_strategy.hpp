#pragma once

namespace epocast {

/// The strategy of a study that names none.
inline constexpr const char* kDefaultStrategy = "data_parallel";

}  // namespace epocast
