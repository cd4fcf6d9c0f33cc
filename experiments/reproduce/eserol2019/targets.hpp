#pragma once
// Eserol 2019, Bilkent University: VGG-16 on a Skylake cluster, data parallelism against hypergraph-partitioned model
// parallelism. Published numbers are in the CSV files beside this.

#include "experiments/reproduce/target.hpp"

namespace epocast::eserol2019 {

inline constexpr double kMega = 1024.0 * 1024;  ///< of the tables' millions

/// Bytes moved in an epoch. All data-parallel volumes come from simulated all-reduces, those of the hypergraph from the
/// volumes that the thesis' partitioner reached (Table 5.10, an input).
Target table_5_14();

/// Run times with parameter servers on 4 workers, predicted from those of one and two.
Target table_5_15_data_parallel();

/// Run times with model parallelism on 2 and 4 workers, predicted from those of a single worker.
Target table_5_15_model_parallel();

/// Hours until a training accuracy is reached, given one worker's.
Target time_to_accuracy();

/// Partitions that look at loads only: Tables 5.1 to 5.6 and 5.8. Bodies of 5.7 and 5.9 are lost in the copy at hand.
Target table_5_1();
Target table_5_2();
Target table_5_3();
Target table_5_4();
Target table_5_5();
Target table_5_6();
Target table_5_8();

/// Hypergraph partitions: Tables 5.10 to 5.12 and A.3 to A.12. Bodies of A.1 and A.2 are lost.
std::vector<Target> hypergraph_tables();

/// Sizes of VGG-16's activations and weights. Table 2.3, its structure, is lost.
Target table_5_13();

}  // namespace epocast::eserol2019
