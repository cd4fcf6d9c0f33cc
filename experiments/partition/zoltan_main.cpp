// epocast-zoltan GRAPH PARTS_FILE PARTS TOLERANCE SEED: partitions a PaToH file with Zoltan PHG on one process. Called
// by epocast partition --algorithm zoltan.
#include <zoltan.h>

#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "experiments/partition/patoh_file.hpp"

using namespace epocast;

namespace {

const Hypergraph& graph_of(void* data) { return *static_cast<const Hypergraph*>(data); }

int count_vertices(void* data, int* error) {
  *error = ZOLTAN_OK;
  return graph_of(data).vertices();
}

void list_vertices(void* data, int, int, ZOLTAN_ID_PTR ids, ZOLTAN_ID_PTR, int, float* weights, int* error) {
  const Hypergraph& graph = graph_of(data);
  for (int v = 0; v < graph.vertices(); ++v) {
    ids[v] = static_cast<ZOLTAN_ID_TYPE>(v);
    weights[v] = static_cast<float>(graph.weight(v));
  }
  *error = ZOLTAN_OK;
}

void size_nets(void* data, int* nets, int* pins, int* format, int* error) {
  *nets = graph_of(data).nets();
  *pins = static_cast<int>(graph_of(data).pin_count());
  *format = ZOLTAN_COMPRESSED_EDGE;
  *error = ZOLTAN_OK;
}

void list_nets(void* data, int, int nets, int, int, ZOLTAN_ID_PTR ids, int* begin, ZOLTAN_ID_PTR pins, int* error) {
  int at = 0;
  for (int n = 0; n < nets; ++n) {
    ids[n] = static_cast<ZOLTAN_ID_TYPE>(n);
    begin[n] = at;
    for (const int pin : graph_of(data).pins(n)) pins[at++] = static_cast<ZOLTAN_ID_TYPE>(pin);
  }
  *error = ZOLTAN_OK;
}

void size_costs(void* data, int* nets, int* error) {
  *nets = graph_of(data).nets();
  *error = ZOLTAN_OK;
}

void list_costs(void* data, int, int, int nets, int, ZOLTAN_ID_PTR ids, ZOLTAN_ID_PTR, float* costs, int* error) {
  for (int n = 0; n < nets; ++n) {
    ids[n] = static_cast<ZOLTAN_ID_TYPE>(n);
    costs[n] = static_cast<float>(graph_of(data).cost(n));
  }
  *error = ZOLTAN_OK;
}

Partition partition(Hypergraph& graph, const std::string& parts, const std::string& tolerance,
                    const std::string& seed) {
  Zoltan_Struct* zoltan = Zoltan_Create(MPI_COMM_WORLD);
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{{"DEBUG_LEVEL", "0"},
                                                                                   {"LB_METHOD", "HYPERGRAPH"},
                                                                                   {"HYPERGRAPH_PACKAGE", "PHG"},
                                                                                   {"LB_APPROACH", "PARTITION"},
                                                                                   {"NUM_GID_ENTRIES", "1"},
                                                                                   {"NUM_LID_ENTRIES", "1"},
                                                                                   {"RETURN_LISTS", "PARTS"},
                                                                                   {"OBJ_WEIGHT_DIM", "1"},
                                                                                   {"EDGE_WEIGHT_DIM", "1"},
                                                                                   // By default PHG leaves out nets
                                                                                   // with a quarter of the vertices.
                                                                                   {"PHG_EDGE_SIZE_THRESHOLD", "1"},
                                                                                   {"NUM_GLOBAL_PARTS", parts},
                                                                                   {"IMBALANCE_TOL", tolerance},
                                                                                   {"SEED", seed}})
    Zoltan_Set_Param(zoltan, key.c_str(), value.c_str());
  Zoltan_Set_Num_Obj_Fn(zoltan, count_vertices, &graph);
  Zoltan_Set_Obj_List_Fn(zoltan, list_vertices, &graph);
  Zoltan_Set_HG_Size_CS_Fn(zoltan, size_nets, &graph);
  Zoltan_Set_HG_CS_Fn(zoltan, list_nets, &graph);
  Zoltan_Set_HG_Size_Edge_Wts_Fn(zoltan, size_costs, &graph);
  Zoltan_Set_HG_Edge_Wts_Fn(zoltan, list_costs, &graph);
  int changes = 0, id_size = 0, local_size = 0, imports = 0, exports = 0;
  ZOLTAN_ID_PTR import_ids = nullptr, import_local = nullptr, export_ids = nullptr, export_local = nullptr;
  int *import_from = nullptr, *import_to = nullptr, *export_to = nullptr, *export_part = nullptr;
  const int result =
      Zoltan_LB_Partition(zoltan, &changes, &id_size, &local_size, &imports, &import_ids, &import_local, &import_from,
                          &import_to, &exports, &export_ids, &export_local, &export_to, &export_part);
  Partition out{std::stoi(parts), std::vector<int>(static_cast<std::size_t>(graph.vertices()))};
  if (result == ZOLTAN_OK || result == ZOLTAN_WARN)
    for (int i = 0; i < exports; ++i) out.part_of[export_ids[i]] = export_part[i];
  Zoltan_LB_Free_Part(&export_ids, &export_local, &export_to, &export_part);
  Zoltan_Destroy(&zoltan);
  if (result != ZOLTAN_OK && result != ZOLTAN_WARN) throw std::runtime_error("Zoltan failed");
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::cerr << "usage: epocast-zoltan GRAPH PARTS_FILE PARTS TOLERANCE SEED\n";
    return 2;
  }
  // A lone process needs no daemon of Open MPI, which it would look for ssh to start.
  setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
  MPI_Init(&argc, &argv);
  int code = 0;
  try {
    float version = 0;
    Zoltan_Initialize(argc, argv, &version);
    Hypergraph graph = load_patoh(argv[1]);
    std::ofstream out(argv[2]);
    write_partition(out, partition(graph, argv[3], argv[4], argv[5]));
    if (!out.flush()) code = 1;
  } catch (const std::exception& problem) {
    std::cerr << "epocast-zoltan: " << problem.what() << '\n';
    code = 1;
  }
  MPI_Finalize();
  return code;
}
