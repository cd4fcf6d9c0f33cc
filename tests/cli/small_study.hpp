#pragma once
// Studies that take no time.

#include <filesystem>
#include <string>

namespace epocast::test {

inline const std::string kQuickstart =
    (std::filesystem::path(EPOCAST_SOURCE_DIR) / "experiments/studies/vgg16_skylake.yaml").string();
inline const std::string kStudy =
    "study: small\nplatform: skylake_10gbe\nstack: ideal\nmodel: mlp_mnist\nworkers: 2\ndataset: {samples: 6400, "
    "epochs: 2}\n";
inline const std::string kSweep = kStudy + "sweep:\n  workers: [1, 4]\n  batch.per_worker: [16, 32]\n";

}  // namespace epocast::test
