#pragma once
// Eserol 2019, Bilkent University: VGG-16 on a Skylake cluster, data parallelism against hypergraph-partitioned model
// parallelism. Published numbers are in the CSV files beside this.

#include "experiments/reproduce/target.hpp"

namespace epocast::eserol2019 {

/// Bytes moved in an epoch. All data-parallel volumes come from simulated all-reduces, those of the hypergraph from the
/// volumes that the thesis' partitioner reached (Table 5.10, an input).
Target table_5_14();

/// Run times with parameter servers on 2 and 4 workers, predicted from those of a single worker.
Target table_5_15_data_parallel();

/// Run times with model parallelism on 2 and 4 workers, predicted from those of a single worker.
Target table_5_15_model_parallel();

/// Hours until a training accuracy is reached, given one worker's.
Target time_to_accuracy();

}  // namespace epocast::eserol2019
