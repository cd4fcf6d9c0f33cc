#pragma once
// Random studies: a machine, a network, a strategy and everything else that a study can say, drawn from a seed, and the
// same study in another form, for relations between the two.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "tests/conformance/composition_parts.hpp"
#include "tests/conformance/strategy_variants.hpp"
#include "tests/property/random_machine.hpp"

namespace epocast::testing {

/// What a relation changes in a study.
struct Variation {
  double slower = 1;         ///< every duration, and the inverse of every rate, is so many times as long
  double faster = 1;         ///< devices and links, but neither latencies nor overheads
  bool permuted = false;     ///< the workers in another order
  bool idle_layers = false;  ///< with layers in between that cost nothing
  bool ideal = false;        ///< with software that costs nothing
  bool reworded = false;     ///< the same in other words
  bool larger = false;       ///< with eight samples more for each worker
  bool longer = false;       ///< with twice as many epochs
  bool in_phases = false;    ///< the same again, as a second phase
};

class RandomStudy {
 public:
  /// The same seed and attempt give the same study. Not every draw is a valid study.
  RandomStudy(std::uint64_t seed, int attempt) : seed_(seed * 1000 + static_cast<std::uint64_t>(attempt)) {}

  /// Writes what the study needs into files that exist as long as this does; returns the study's text.
  std::string write(const Variation& variation = {}) {
    how_ = variation;
    random_.seed(seed_);
    std::string text = fmt::format("study: random\n{}", strategy());
    text += platform();
    text += model();
    text += batch_and_data();
    text += collective();
    text += settings();
    text += irregularity();
    text += stack();
    text += running_costs();
    return text;
  }

  RandomStudy(const RandomStudy&) = delete;
  RandomStudy& operator=(const RandomStudy&) = delete;
  ~RandomStudy() {
    std::error_code ignored;
    for (const auto& file : files_) std::filesystem::remove(file, ignored);
  }

  // Known once the study is written.
  const std::string& strategy_name() const { return strategy_name_; }
  const std::string& options() const { return options_; }
  /// Whether any order of the workers is as good as another: all devices and all pairs of them are equal.
  bool is_star() const { return devices_per_node_ == 1; }
  /// Whether it has layers after which others that cost nothing may come.
  bool has_own_model() const { return own_model_; }
  bool is_irregular() const { return irregular_; }
  bool chooses_algorithm() const { return is_choice(settings_.algorithm); }
  /// Whether a library's rule chooses it, which has latencies in seconds and sizes in bytes of its own.
  bool asks_library() const { return chooses_algorithm() && settings_.algorithm != CollectiveAlgorithm::automatic; }
  /// Whether a measured step says how long computing takes, whatever the device: then a faster update, which is a part
  /// of the step, leaves more of it to the passes.
  bool is_anchored() const { return anchored_; }
  /// Whether its devices are the catalogue's, which are as fast as they are.
  bool is_described() const { return described_; }
  /// Whether all of training is one phase, in which every worker has as many samples.
  bool is_even() const { return even_ && !phased_; }
  /// Whether its software costs something.
  bool has_stack() const { return has_stack_; }
  /// Whether that is one of the shipped stacks.
  bool has_shipped_stack() const { return shipped_stack_; }
  /// Whether something that is shipped says times in seconds, which are what they are.
  bool has_shipped_times() const { return described_ || shipped_stack_ || fitted_ || measured_collectives_; }
  /// Whether collectives have measured times, of which nobody knows how they were carried out.
  bool measures_collectives() const { return measured_collectives_; }
  /// Whether computing is corrected near measured steps: not by the same for each batch.
  bool has_discrepancy() const { return discrepancy_; }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  bool chance(double p) { return between(0, 1) < p; }
  double between(double low, double high) { return std::uniform_real_distribution(low, high)(random_); }
  template <class T>
  T one_of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(below(static_cast<int>(values.size())))];
  }
  /// Of orders of magnitude.
  double spread(double low, double high) { return std::exp(between(std::log(low), std::log(high))); }

  std::string seconds(double value) const { return fmt::format("{:.17g} s", value * how_.slower); }
  std::string rate(double value) const { return fmt::format("{:.17g} B/s", value / how_.slower); }

  /// Quantities of time in the text of a variant, in the units of this study.
  std::string in_own_units(const std::string& text) const {
    static const std::regex quantity("([0-9.]+) (us|ms|s|[MG]B/s|[MG]b/s)");
    std::string out;
    auto at = text.cbegin();
    for (std::sregex_iterator found(text.begin(), text.end(), quantity), none; found != none; ++found) {
      out.append(at, (*found)[0].first);
      const double value = std::stod((*found)[1]);
      const std::string unit = (*found)[2];
      out += fmt::format("{:.17g} {}", unit.ends_with("/s") ? value / how_.slower : value * how_.slower, unit);
      at = (*found)[0].second;
    }
    return out.append(at, text.cend());
  }

  std::filesystem::path file(const char* name, const std::string& text) {
    files_.push_back(std::filesystem::temp_directory_path() / fmt::format("epocast-{}-{}-{}", getpid(), seed_, name));
    std::ofstream(files_.back()) << text;
    return files_.back();
  }

  std::string strategy() {
    composed_ = chance(0.25);
    return composed_ ? composition() : variant();
  }

  /// The mesh, in a third of cases with one axis twice or three times as long.
  std::string grown(const std::string& mesh) {
    workers_ = 8;
    if (!chance(0.33)) return mesh;
    std::vector<std::size_t> axes;  // extents of one digit
    for (std::size_t at = 0; at < mesh.size(); ++at)
      if (mesh[at] >= '2' && mesh[at] <= '8') axes.push_back(at);
    const std::size_t axis = one_of(axes);
    const int times = 2 + below(2);
    workers_ *= times;
    return mesh.substr(0, axis) + std::to_string(times * (mesh[axis] - '0')) + mesh.substr(axis + 1);
  }

  /// A small transformer over a mesh of eight devices and more.
  std::string composition() {
    const conformance::MeshPart& part = one_of(conformance::mesh_parts());
    mixture_ = part.mixture;
    const std::string mesh = grown(part.mesh);
    strategy_name_ = "composition";
    options_ =
        fmt::format("{{mesh: {}, schedule: {{name: {}}}", mesh,
                    one_of(part.pipeline ? conformance::pipeline_schedules() : conformance::single_stage_schedules()));
    if (const std::string body = one_of(part.bodies); !body.empty()) options_ += ", body: " + body;
    options_ +=
        fmt::format(", synchronisation: {}}}", part.data ? one_of(conformance::synchronisations()) : "all_reduce");
    settings_ = {};
    return fmt::format("strategy: {}\n", in_own_units(options_));
  }

  std::string variant() {
    static const auto table = conformance::strategy_variants();
    const auto& [name, variants] = *std::next(table.begin(), below(static_cast<int>(table.size())));
    const conformance::Variant& variant = one_of(variants);
    strategy_name_ = name;
    options_ = variant.options;
    settings_ = variant.collective;
    const bool one_node = name == "hogwild";  // whose variants are for one device a node
    workers_ = std::clamp(1 + below(8), variant.min_workers, one_node ? 8 : variant.max_workers);
    const std::string inner = variant.options.substr(1, variant.options.size() - 2);
    return fmt::format("strategy: {{name: {}{}{}}}\n", name, inner.empty() ? "" : ", ", in_own_units(inner));
  }

  /// Equal devices on a star, nodes of several behind a port each, or a machine of the catalogue's devices.
  std::string platform() {
    described_ = strategy_name_ != "hogwild" && chance(0.2);
    return described_ ? description() : drawn();
  }

  /// Boards of two dies, switches with an uplink, copies through the host's memory, several cards, processors.
  std::string description() {
    devices_per_node_ = one_of<int>({2, 4, 8});
    const int nodes = (workers_ + devices_per_node_ - 1) / devices_per_node_ + below(2);
    std::string out = fmt::format("{{cluster: drawn, nodes: {}, devices: {{kind: {}, per_node: {}", nodes,
                                  one_of<std::string>({"k80", "v100_sxm2_16gb", "rtx_3090"}), devices_per_node_);
    const bool switches = chance(0.5);
    if (switches) out += ", per_switch: 2";
    out += fmt::format("}}, inside: {{rate: {} GB/s, latency: {} us", spread(1, 100), spread(1, 20));
    if (switches) out += fmt::format(", uplink: {} GB/s, peer_access: {}", spread(1, 50), chance(0.5));
    out += fmt::format("}}, cards: {{per_node: {}, rate: {} Gb/s, latency: {} us}}", chance(0.3) ? 2 : 1,
                       spread(1, 400), spread(5, 100));
    if (chance(0.3))
      out += ", processors: {kind: " + one_of<std::string>({"xeon_e5_2698_v4_pair", "xeon_e5_2686_v4"}) + "}";
    return fmt::format("platform: {}}}\nworkers: {}\n", out, workers_);
  }

  std::string drawn() {
    MachineParts machine;
    devices_per_node_ = strategy_name_ == "hogwild" ? 8 : one_of<int>({1, 1, 2, 4});
    machine.devices_per_node = devices_per_node_;
    machine.nodes = (workers_ + devices_per_node_ - 1) / devices_per_node_ + below(3);
    const double faster = how_.faster / how_.slower;
    machine.speed = spread(1e11, 1e14) * faster;
    machine.memory_bandwidth = spread(2e11, 2e12) * faster;
    machine.inside = spread(1e9, 1e11) * faster;
    machine.outside = spread(1e8, 2e10) * faster;
    machine.latency = (chance(0.2) ? 0 : spread(1e-6, 1e-4)) * how_.slower;
    if (!is_star() && chance(0.2)) machine.unequal = between(0.3, 1);
    return fmt::format("platform: {}\nworkers: {}\n", file("platform.xml", machine_xml(machine)).string(),
                       first_workers(workers_));
  }

  /// The first so many of the workers; permuted, they are the other way round.
  std::string first_workers(int count) const {
    if (described_ || (!how_.permuted && !how_.reworded)) return std::to_string(count);
    std::string out;
    for (int w = 0; w < count; ++w)
      out += fmt::format("{}d{}", w == 0 ? "" : ", ", how_.permuted ? workers_ - 1 - w : w);
    return "{hosts: [" + out + "]}";
  }

  std::string model() {
    if (composed_) {
      own_model_ = false;
      const std::string sizes = "layers: 4, heads: 4, sequence: 16, vocabulary: 96";
      return mixture_
                 ? "model: {name: mixtral, " + sizes + ", hidden: 64, inner: 96, kv_heads: 2, experts: 8, chosen: 2}\n"
                 : "model: {name: gpt2, " + sizes + ", width: 64}\n";
    }
    opaque_ = chance(0.1);
    own_model_ = !opaque_ && chance(0.7);
    if (opaque_)
      return fmt::format("model: {{opaque: drawn, parameters: {:.0f}, tensors: {}, last: {:.0f}}}\n", spread(1e6, 1e8),
                         10 + below(100), spread(1e3, 1e6));
    if (!own_model_)
      return fmt::format("model: {}\n", one_of<std::string>({"lenet", "mlp_mnist", "resnet20", "alexnet_owt"}));
    std::string layers;
    int idle = 0;
    const auto flat = [&] {
      return how_.idle_layers ? fmt::format("  - {{flatten: idle{0}}}\n  - {{flatten: more{0}}}\n", idle++)
                              : std::string();
    };
    const int stages = 1 + below(3);
    for (int s = 0; s < stages; ++s) {
      const int filters = 8 << below(4);
      layers +=
          fmt::format("  - {{conv: c{}, filters: {}, kernel: {}, padding: same}}\n", s, filters, 1 + 2 * below(3));
      if (chance(0.5)) layers += fmt::format("  - {{batch_norm: n{}}}\n", s);
      layers += fmt::format("  - {{relu: r{}}}\n", s);
      if (chance(0.5))
        layers += fmt::format(
            "  - {{conv: b{0}, filters: {1}, kernel: 3, padding: 1}}\n  - {{add: s{0}, inputs: [b{0}, r{0}]}}\n", s,
            filters);
      layers += fmt::format("  - {{pool: p{}, kernel: 2, stride: 2}}\n", s);
    }
    layers += flat();
    for (int f = 1; f < 3; ++f) {
      layers += fmt::format("  - {{fc: fc{}, units: {}}}\n  - {{relu: rf{}}}\n", f, 16 << below(8), f);
      if (chance(0.3)) layers += fmt::format("  - {{dropout: d{}, rate: 0.5}}\n", f);
      layers += flat();
    }
    layers += "  - {fc: fc3, units: 10}\n" + flat() + "  - softmax\n";
    const int size = 16 << below(2);
    return fmt::format("model: {}\n",
                       file("model.yaml", fmt::format("model: random\ndescription: random\nsource: random\n"
                                                      "input: {{channels: 3, height: {0}, width: {0}}}\nlayers:\n{1}",
                                                      size, layers))
                           .string());
  }

  std::string batch_and_data() {
    const int per_worker = 8 * (1 + below(4)) + (how_.larger ? 8 : 0);
    const int batch = per_worker * workers_;
    const int steps = 20 + below(150);
    const bool by_worker = chance(0.5);
    even_ = by_worker || chance(0.8);
    std::string text;
    if (!even_)
      text = fmt::format("batch: {{global: {}, spare: {}}}\n", 1 + below(batch),
                         one_of<std::string>({"idle", "replicate"}));
    else if (by_worker != (how_.reworded && !composed_))
      text = fmt::format("batch: {{per_worker: {}}}\n", per_worker);
    else
      text = fmt::format("batch: {{global: {}}}\n", batch);
    const int epochs = 1 + below(2);
    text += fmt::format(
        "dataset: {{samples: {}, epochs: {}{}{}{}}}\n", batch * steps + below(batch), (how_.longer ? 2 : 1) * epochs,
        chance(0.2) ? ", drop_last: true" : "", chance(0.03) ? ", shards: stealing" : "",
        composed_ && chance(0.2) ? fmt::format(", lengths: {{mean: {}, cv: {}}}", 4 + below(8), between(0, 2)) : "");
    if (how_.in_phases) text += fmt::format("schedule: [{{epochs: {0}}}, {{epochs: {0}}}]\n", epochs);
    phased_ = chance(0.1);
    if (phased_) {
      const int fewer = chance(0.5) ? workers_ : 1 + below(workers_);
      text += fmt::format("schedule: [{{epochs: 1, workers: {}, batch.global: {}}}, {{epochs: 1, batch.global: {}}}]\n",
                          first_workers(fewer), per_worker * fewer, 2 * batch);
    }
    return text;
  }

  std::string collective() {
    measured_collectives_ = chance(0.05);
    if (measured_collectives_)
      return fmt::format(
          "collective: {{calibration: {}}}\n",
          one_of<std::string>({"allreduce_p100_pcie", "allreduce_v100_nvlink", "collectives_a100_nvswitch",
                               "collectives_h100_cluster", "messages_h100_nvswitch"}));
    if (chance(0.5)) {
      using A = CollectiveAlgorithm;
      settings_.algorithm = one_of<A>({A::ring, A::halving_doubling, A::recursive_doubling, A::double_binary_tree,
                                       A::hierarchical, A::multi_ring, A::automatic, A::nccl});
      settings_.level =
          one_of<CollectiveLevel>({CollectiveLevel::automatic, CollectiveLevel::flow, CollectiveLevel::message});
    }
    std::string text =
        fmt::format("algorithm: {}, level: {}", to_string(settings_.algorithm), to_string(settings_.level));
    if (chance(0.4)) {
      text += ", reduction_rate: " + rate(spread(1e9, 1e11));
      if (chance(0.3)) text += ", cached_reduction: {up_to: 100 kB, rate: " + rate(spread(1e10, 1e12)) + "}";
    }
    std::string out = "collective: {" + text + "}\n";
    if (chance(0.3))
      out += fmt::format("network: {{efficiency: {}, message_overhead: {}}}\n", between(0.5, 1),
                         seconds(spread(1e-7, 1e-4)));
    return out;
  }

  std::string settings() {
    std::string out = fmt::format("optimizer: {}\n", one_of<std::string>({"sgd", "momentum", "adam", "lion", "lamb"}));
    fitted_ = !opaque_ && chance(0.1);
    const auto precision = fitted_ ? one_of<std::string>({"fp32", "fp32", "tf32", "fp16", "bf16", "fp8"})
                                   : one_of<std::string>({"fp32", "fp32", "fp32", "fp32", "fp16"});
    if (precision != "fp32") out += fmt::format("precision: {}\n", precision);
    if (fitted_)
      out += fmt::format("compute: {{cost_model: fitted, calibration: {}{}{}", calibration_of(precision),
                         chance(0.3) ? ", launch: " + seconds(spread(1e-6, 1e-3)) : "",
                         chance(0.3) ? ", loss: " + loss() : "") +
             (chance(0.3) ? ", attention: " + attention() : "") +
             (chance(0.3) ? ", metrics: 2, autocast: true, gelu: eager" : "") +
             (chance(0.3) ? ", batch_norm: fused" : "");
    else
      out += fmt::format("compute: {{cost_model: roofline, overhead: {}, efficiency: {}", seconds(spread(1e-7, 2e-5)),
                         between(0.2, 1));
    if (chance(0.2)) out += ", kernel_overhead: " + seconds(spread(1e-7, 1e-5));
    if (chance(0.2)) out += ", step_overhead: " + seconds(spread(1e-4, 1e-2));
    anchored_ = opaque_ || chance(0.2);
    if (anchored_) out += fmt::format(", step_time: {{batch: 8, time: {}}}", seconds(spread(1e-3, 1e-1)));
    out += "}\n";
    if (chance(0.1)) out += "steps: " + steps().string() + "\n";
    const bool recompute = chance(0.3), reserve = chance(0.2);
    out += fmt::format("memory: {{recompute: {}, workspace: {}{}{}}}\n",
                       recompute ? one_of<std::string>({"sqrt", "blocks", "2", "3"}) : "none",
                       one_of<std::string>({"im2col", "none", "1 MiB"}), reserve ? ", reserve: 1 GB" : "",
                       chance(0.15) ? offload() : "");
    return out;
  }

  std::string calibration_of(const std::string& precision) {
    if (precision == "tf32") return one_of<std::string>({"h100_tf32", "a100_tf32"});
    if (precision == "fp16") return one_of<std::string>({"v100_fp16", "a100_bf16"});
    if (precision == "bf16") return one_of<std::string>({"a100_bf16_triton", "h100_bf16", "h200_bf16"});
    if (precision == "fp8") return one_of<std::string>({"h100_fp8", "b200_fp8"});
    return one_of<std::string>({"v100", "p100", "knl7250", "k80"});
  }

  std::string attention() { return one_of<std::string>({"fused_softmax", "eager", "compiled"}); }
  std::string loss() { return one_of<std::string>({"framework", "vocabulary_parallel", "fused"}); }

  /// Constants of measured steps, and perhaps what they left of them.
  std::filesystem::path steps() {
    std::string text =
        "calibration: steps\nfitted_to: x\nquality: {points: 4, error: 0.01, left_out_error: 0.02}\n"
        "measured: {platforms: [random], models: [random], strategies: [" +
        strategy_name_ + "], workers: [1, 8], batch: [1, 64]}\nconstants:\n";
    text += fmt::format("  compute.scale: {{value: {0}, low: {0}, high: {0}}}\n", spread(0.5, 2));
    discrepancy_ = chance(0.7);
    if (discrepancy_) text += "discrepancy:\n";
    for (int workers = 1; discrepancy_ && workers <= 8; workers *= 2)
      text += fmt::format("  - {{platform: random, model: random, strategy: {}, workers: {}, batch: {}, weight: {}}}\n",
                          strategy_name_, workers, 8 * (1 + below(4)), between(-0.1, 0.1));
    return file("steps.yaml", text);
  }

  std::string offload() {
    return fmt::format(
        ", offload: {{what: {}, link: {}, host_memory: {}, devices_per_link: {}, overlap: {}, buffer: {} MB}}",
        one_of<std::string>({"optimizer", "activations", "[optimizer, activations]"}), rate(spread(1e9, 1e11)),
        rate(spread(1e10, 1e12)), 1 + below(2), chance(0.5), one_of<int>({0, 1, 1000}));
  }

  std::string irregularity() {
    irregular_ = chance(0.25);
    if (!irregular_) return "";
    std::string out;
    if (chance(0.5))
      out +=
          fmt::format("noise: {{compute_cv: {}, transfer_cv: {}, per: {}, kind: {}, seed: {}}}\n", between(0.01, 0.3),
                      chance(0.3) ? between(0.01, 0.3) : 0, one_of<std::string>({"task", "step"}),
                      one_of<std::string>({"log_normal", "gamma"}), 1 + below(100));
    if (chance(0.2))
      out += fmt::format("stops: [{{worker: {}, from: {}, until: {}}}]\n", below(workers_), seconds(0.2), seconds(0.3));
    if (chance(0.5)) out += fmt::format("stragglers: [{{worker: {}, slowdown: {}}}]\n", below(workers_), between(1, 3));
    if (chance(0.3))
      out += fmt::format("degraded_links: [{{worker: {}, slowdown: 2, from: {}, until: {}}}]\n", below(workers_),
                         seconds(0.1), seconds(0.4));
    return out;
  }

  /// What machines cost and draw, how often they fail, and when training stands still.
  std::string running_costs() {
    std::string out;
    const std::string hour = fmt::format("{:.17g} $", between(1, 50) / how_.slower);
    if (chance(0.3)) out += fmt::format("price: {{{}: {}}}\n", chance(0.5) ? "node_hour" : "device_hour", hour);
    if (chance(0.3))
      out +=
          fmt::format("power: {{device: {{idle: {} W, busy: {} W}}, node: {} W, overhead: {}, intensity: {} g/kWh}}\n",
                      between(10, 100), between(100, 700), between(0, 2000), between(1, 2), between(0, 500));
    if (chance(0.15)) {
      const std::string interval = chance(0.5) ? "auto" : seconds(spread(10, 1e4));
      const std::string write = chance(0.5) ? seconds(spread(0.1, 100)) : rate(spread(1e8, 1e10));
      out += fmt::format("failures: {{node_mtbf: {}, checkpoint: {}, write: {}, restart: {}}}\n",
                         seconds(spread(1e5, 1e8)), interval, write, seconds(between(0, 100)));
    }
    if (chance(0.15)) {
      const auto every = [&] {
        return one_of<std::string>({seconds(spread(0.01, 10)), fmt::format("{} steps", 1 + below(100)), "1 epoch"});
      };
      out += "pauses: {";
      const bool evaluation = chance(0.6);
      if (evaluation) out += fmt::format("evaluation: {{every: {}, samples: {}}}", every(), 1 + below(10'000));
      if (!evaluation || chance(0.5))
        out += fmt::format("{}checkpoint: {{every: {}, rate: {}, node_rate: {}{}}}", evaluation ? ", " : "", every(),
                           rate(spread(1e8, 1e10)), rate(spread(1e8, 1e10)),
                           chance(0.5) ? ", background: true, copy_rate: " + rate(spread(1e9, 1e11)) : "");
      out += "}\n";
    }
    return out;
  }

  /// Each mechanism of a software stack is there or is not; or it is one that is shipped.
  std::string stack() {
    has_stack_ = chance(0.4);
    shipped_stack_ = has_stack_ && chance(0.25);
    if (!has_stack_) return "";
    if (shipped_stack_) {
      const auto name =
          one_of<std::string>({"pytorch_ddp", "horovod", "tensorflow1", "mxnet", "megatron", "caffe_mpi", "gloo"});
      return fmt::format("stack: {}\n", how_.ideal ? "ideal" : name);
    }
    std::string out = "stack: {name: ideal";
    const auto maybe = [&](const char* key, const std::string& value) {
      if (chance(0.5)) out += fmt::format(", {}: {}", key, value);
    };
    maybe("copies", fmt::format("{}", between(0, 8)));
    maybe("accumulation", "12");
    maybe("update_traffic", "{fp32: 8, fp16: 14}");
    maybe("processor_rate", rate(spread(1e8, 1e10)));
    maybe("handshake", fmt::format("{}", between(0, 2)));
    maybe("window", fmt::format("{:.0f} B", spread(2e4, 1e7)));
    maybe("collective_overhead", seconds(spread(1e-6, 1e-3)));
    maybe("launch", seconds(spread(1e-6, 1e-3)));
    maybe("loss", loss());
    maybe("attention", attention());
    maybe("update_accesses", one_of<std::string>({"fused", "foreach", "33"}));
    maybe("interference", fmt::format("{}", between(0, 0.9)));
    maybe("spread", fmt::format("{}", between(0, 0.1)));
    maybe("input", fmt::format("{{per_worker: {}}}", spread(10, 1e6) / how_.slower));
    return how_.ideal ? "stack: ideal\n" : out + "}\n";
  }

  std::uint64_t seed_;
  std::mt19937_64 random_;
  Variation how_;
  std::vector<std::filesystem::path> files_;
  std::string strategy_name_, options_;
  CollectiveSettings settings_;
  int workers_ = 1, devices_per_node_ = 1;
  bool composed_ = false, mixture_ = false, described_ = false, even_ = true, phased_ = false;
  bool own_model_ = false, opaque_ = false, irregular_ = false, anchored_ = false;
  bool has_stack_ = false, shipped_stack_ = false, fitted_ = false, measured_collectives_ = false;
  bool discrepancy_ = false;
};

}  // namespace epocast::testing
