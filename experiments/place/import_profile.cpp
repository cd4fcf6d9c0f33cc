// Chrome traces of PyTorch's profiler as operator graphs: what is known without the identities of tensors.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "experiments/calibrate/trace_position.hpp"
#include "experiments/calibrate/traced_kernels.hpp"
#include "experiments/place/graph_draft.hpp"

namespace epocast {
namespace {

using ProfileJson = nlohmann::json;

constexpr double kMostTraceBytes = 1e15;

double bytes_of_type(const std::string& type) {
  if (type == "c10::Half" || type == "c10::BFloat16" || type == "short") return 2;
  if (type == "double" || type == "long int" || type == "long") return 8;
  if (type == "bool" || type == "unsigned char" || type == "signed char") return 1;
  return 4;
}

struct ProfiledOperator : TracedCall {
  std::string name;
  std::int64_t sequence = -1;  ///< shared by an operator and what autograd runs for it
  bool is_backward = false;
  bool calls_others = false;
  double largest_input = 0;  ///< bytes
};

class Profile {
 public:
  Profile(const std::string& text, const std::string& file) : text_(text), file_(file) { read(); }

  /// A chain in the order of starts. An operator's output is what the next one reads, its largest input; what autograd
  /// runs for an operator reads what the operator read.
  NamedGraph graph() {
    inherit();
    const bool has_device = kernels_.any();
    std::vector<const ProfiledOperator*> chain;
    double claimed = 0;
    for (const ProfiledOperator& op : operators_) {
      if (has_device ? op.launched > 0 : !op.calls_others) chain.push_back(&op);
      claimed += op.launched;
    }
    if (operators_.empty())
      throw ConfigError(Location{file_, 1, 0}, "traceEvents", "holds no operators (\"cat\": \"cpu_op\")");
    if (chain.empty())
      throw ConfigError(
          Location{file_, 1, 0}, "traceEvents",
          "no kernel on the GPU can be traced to an operator, by its \"External id\" or its launch; record "
          "the CPU's activities too");
    std::stable_sort(chain.begin(), chain.end(), [](const auto* a, const auto* b) { return a->start < b->start; });
    GraphDraft draft;
    std::vector<std::string> names;
    std::map<std::int64_t, std::size_t> before_forward;  // by sequence number: the node whose output its operator reads
    for (std::size_t i = 0; i < chain.size(); ++i) {
      const ProfiledOperator& op = *chain[i];
      const Location where{file_, 0, 0};
      names.push_back(fmt::format("{}/{}", op.name, i));
      const double output = i + 1 < chain.size() ? chain[i + 1]->largest_input : 0;
      draft.add({names.back(), (has_device ? op.launched : op.duration) * 1e-6, output, Lifetime::normal, "", where});
      if (i > 0) draft.add_edge(names[i - 1], names[i], op.largest_input, where);
      if (op.sequence < 0 || i == 0) continue;
      if (!op.is_backward) {
        before_forward.emplace(op.sequence, i - 1);
      } else if (const auto found = before_forward.find(op.sequence); found != before_forward.end() &&
                                                                      found->second + 1 < i &&
                                                                      chain[found->second + 1]->largest_input > 0) {
        draft.add_edge(names[found->second], names[i], chain[found->second + 1]->largest_input, where);
      }
    }
    NamedGraph out = draft.finish(file_);
    if (unclaimed_ > 0)
      out.warnings.push_back(
          fmt::format("{}: {:.1f} % of the GPU's time is left out, of kernels that cannot be traced to an operator",
                      file_, 100 * unclaimed_ / (claimed + unclaimed_)));
    return out;
  }

 private:
  [[noreturn]] void fail(std::size_t event, const std::string& key, const std::string& problem) const {
    throw ConfigError(Location{file_, std::max(1, line_of_event(text_, event)), 0},
                      fmt::format("traceEvents[{}].{}", event, key), problem);
  }

  void read() {
    ProfileJson trace;
    try {
      trace = ProfileJson::parse(text_);
    } catch (const ProfileJson::parse_error& problem) {
      const auto read = static_cast<std::ptrdiff_t>(std::min(problem.byte, text_.size()));
      const auto line = 1 + std::count(text_.begin(), text_.begin() + read, '\n');
      throw ConfigError(Location{file_, static_cast<int>(line), 0}, "",
                        std::string("is not whole JSON; is the file cut off? ") + problem.what());
    } catch (const ProfileJson::exception& problem) {  // a number beyond all range
      throw ConfigError(Location{file_, 1, 0}, "", std::string("is no trace that can be read: ") + problem.what());
    }
    const auto events = trace.is_object() ? trace.find("traceEvents") : trace.end();
    if (!trace.is_object() || events == trace.end() || !events->is_array())
      throw ConfigError(Location{file_, 1, 0}, "traceEvents", "is no list; is this a Chrome trace?");
    for (std::size_t e = 0; e < events->size(); ++e) read((*events)[e], e);
    std::stable_sort(operators_.begin(), operators_.end(), comes_before);
    std::vector<TracedCall*> calls;
    for (ProfiledOperator& op : operators_) calls.push_back(&op);
    unclaimed_ = kernels_.assign(calls);
  }

  static std::int64_t integer(const ProfileJson& args, std::initializer_list<const char*> keys) {
    for (const char* key : keys)
      if (const auto found = args.find(key); found != args.end() && found->is_number_integer())
        return found->get<std::int64_t>();
    return -1;
  }
  static std::string text_of(const ProfileJson& of, const char* key) {
    const auto found = of.find(key);
    if (found == of.end()) return "";
    return found->is_string() ? found->get<std::string>() : found->dump();
  }
  double microseconds(const ProfileJson& event, std::size_t e, const char* key) const {
    const auto found = event.find(key);
    if (found == event.end() || !found->is_number()) fail(e, key, "must be a number of microseconds");
    const double value = found->get<double>();
    if (!std::isfinite(value) || value < 0 || value > 1e18) fail(e, key, "must be a time in microseconds");
    return value;
  }

  void read(const ProfileJson& event, std::size_t e) {
    if (!event.is_object() || text_of(event, "ph") != "X") return;
    const TraceEvent kind = trace_event(text_of(event, "cat"));
    if (kind == TraceEvent::other) return;
    const auto found = event.find("args");
    const ProfileJson args = found != event.end() && found->is_object() ? *found : ProfileJson::object();
    ProfiledOperator op;
    op.thread = {text_of(event, "pid"), text_of(event, "tid")};
    op.duration = microseconds(event, e, "dur");
    op.start = microseconds(event, e, "ts");
    op.id = integer(args, {"External id", "external id"});
    const std::int64_t correlation = integer(args, {"correlation"});
    if (kind == TraceEvent::kernel) return kernels_.add_kernel(op.id, correlation, op.duration);
    if (kind == TraceEvent::launch) return kernels_.add_launch(correlation, std::move(op));
    op.name = text_of(event, "name");
    op.sequence = integer(args, {"Sequence number"});
    op.is_backward = integer(args, {"Fwd thread id"}) > 0 || op.name.find("Backward") != std::string::npos;
    const auto types = args.find("Input type");
    if (const auto dims = args.find("Input Dims"); dims != args.end() && dims->is_array())
      for (std::size_t i = 0; i < dims->size(); ++i) {
        const std::string type =
            types != args.end() && types->is_array() && i < types->size() && (*types)[i].is_string()
                ? (*types)[i].get<std::string>()
                : "float";
        op.largest_input = std::max(op.largest_input, tensor_bytes((*dims)[i], type, e));
      }
    operators_.push_back(std::move(op));
  }

  double tensor_bytes(const ProfileJson& dims, const std::string& type, std::size_t e) const {
    if (!dims.is_array() || dims.empty()) return 0;  // a scalar
    double bytes = bytes_of_type(type);
    for (const ProfileJson& d : dims) {
      if (!d.is_number_integer()) return 0;  // a list of tensors
      bytes *= d.get<double>();
    }
    if (bytes < 0 || bytes > kMostTraceBytes) fail(e, "args.Input Dims", "holds a dimension out of range");
    return bytes;
  }

  /// What lies within an operator on its thread belongs to its forward or backward pass; and operators that call
  /// others are found.
  void inherit() {
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < operators_.size(); ++i) {
      ProfiledOperator& op = operators_[i];
      while (!open.empty() && (operators_[open.back()].thread != op.thread || operators_[open.back()].end() < op.end()))
        open.pop_back();
      if (!open.empty()) {
        ProfiledOperator& caller = operators_[open.back()];
        caller.calls_others = true;
        if (op.sequence < 0 || caller.is_backward) op.sequence = std::max(op.sequence, caller.sequence);
        op.is_backward = op.is_backward || caller.is_backward;
      }
      open.push_back(i);
    }
  }

  const std::string& text_;
  std::string file_;
  std::vector<ProfiledOperator> operators_;
  TracedKernels kernels_;
  double unclaimed_ = 0;  ///< [us] of kernels of no operator
};

}  // namespace

NamedGraph read_profiler_trace(const std::string& text, const std::string& file) { return Profile(text, file).graph(); }

}  // namespace epocast
