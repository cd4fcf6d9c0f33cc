#include "experiments/costs/running_costs.hpp"

#include <fmt/format.h>

#include <set>
#include <stdexcept>

#include "sim/quantity_unit.hpp"
#include "sim/text.hpp"

namespace epocast {
namespace {

constexpr const char* kBlocks[] = {"price", "power", "failures", "pauses"};
constexpr double kHour = 3600;
constexpr double kMostSeconds = 1e12;

/// A quantity of one of these units, within a range given in SI units.
double read_quantity(const ConfigNode& node, const std::string& noun, const std::vector<UnitFactor>& units,
                     Range range) {
  double value = 0;
  try {
    value = parse_quantity(node.as_string(), noun, units);
  } catch (const std::invalid_argument& problem) {
    throw node.error(problem.what());
  }
  if (value < range.min || value > range.max)
    throw node.error(fmt::format("must be from {:g} to {:g} {}, got '{}'", range.min, range.max, units.front().name,
                                 node.as_string()));
  return value;
}

double read_power(const ConfigNode& node) { return read_quantity(node, "a power", power_units(), Range{0, 1e9}); }

/// `700 W`, or `{idle: 90 W, busy: 700 W}`.
PowerDraw read_draw(const ConfigNode& node) {
  if (!node.is_map()) {
    const double always = read_power(node);
    return {always, always};
  }
  const PowerDraw draw{read_power(node.at("idle")), read_power(node.at("busy"))};
  if (draw.busy < draw.idle) throw node.at("busy").error("is less than the power of what idles");
  return draw;
}

Price read_price(const ConfigNode& node) {
  const char* const kForm = "write `price: {node_hour: 20 $}` or `price: {device_hour: 2.50 $}`";
  if (!node.is_map()) throw node.error(kForm);
  const bool of_node = node.has("node_hour"), of_device = node.has("device_hour");
  if (of_node && of_device) throw node.at("device_hour").error("give the price of a node or of a device, not both");
  if (!of_node && !of_device) {
    node.check_all_read();  // names the key that is neither
    throw node.error(kForm);
  }
  Price price;
  price.of_node = of_node;
  const ConfigNode amount = node.at(of_node ? "node_hour" : "device_hour");
  std::vector<UnitFactor> currencies;
  for (const char* name : {"$", "\u20ac", "\u00a3", "\u00a5", "USD", "EUR", "GBP", "CHF", "JPY", "CNY", "INR", "CAD",
                           "AUD", "SEK", "NOK", "DKK", "PLN", "KRW"})
    currencies.push_back({name});
  price.per_hour = read_quantity(amount, "a price", currencies, Range{0, 1e12});
  price.currency = trimmed(amount.as_string().substr(amount.as_string().find_last_of("0123456789.") + 1));
  return price;
}

PowerSetting read_power_setting(const ConfigNode& node) {
  if (!node.is_map()) throw node.error("write `power: {device: {idle: 90 W, busy: 700 W}}`");
  PowerSetting power;
  if (!node.has("device") && !node.has("node")) throw node.error("give the power of a device, of a node, or of both");
  if (node.has("device")) power.device = read_draw(node.at("device"));
  if (node.has("node")) power.node = read_draw(node.at("node"));
  power.overhead = node.get("overhead", 1.0, Range{1, 10});
  if (node.has("intensity"))
    power.intensity =
        read_quantity(node.at("intensity"), "a mass of CO2 for an energy", emission_units(), Range{0, 1e5}) / 1e3 /
        (kHour * 1e3);
  return power;
}

FailureSetting read_failures(const ConfigNode& node) {
  if (!node.is_map()) throw node.error("write `failures: {node_mtbf: 1000 d, write: 60 s, restart: 5 min}`");
  FailureSetting failures;
  failures.node_mtbf = node.at("node_mtbf").as_seconds(Range{1, kMostSeconds}).value;
  if (node.get("checkpoint", "auto") != "auto")
    failures.checkpoint = node.at("checkpoint").as_seconds(Range{1e-3, kMostSeconds}).value;
  const ConfigNode write = node.at("write");
  if (write.as_string().ends_with("/s"))
    failures.write_rate = write.as_bytes_per_second(Range{1, 1e18}).value;
  else
    failures.write = write.as_seconds(Range{0, kMostSeconds}).value;
  failures.restart = node.get("restart", Seconds(0), Range{0, kMostSeconds}).value;
  return failures;
}

template <class Setting, class Read>
void read_block(const ConfigNode& study, const ConfigNode& platform, const char* key, Read read,
                std::optional<Setting>& out) {
  const bool own = study.has(key);
  if (!own && !(platform.is_map() && platform.has(key))) return;
  const ConfigNode block = own ? study.at(key) : platform.at(key);
  if (block.is_null()) return;
  out = read(block);
  block.check_all_read();
}

}  // namespace

RunningCosts read_running_costs(const ConfigNode& study, const ConfigNode& platform) {
  RunningCosts out;
  read_block(study, platform, "price", read_price, out.price);
  read_block(study, platform, "power", read_power_setting, out.power);
  read_block(study, platform, "failures", read_failures, out.failures);
  read_block(study, platform, "pauses", read_pauses, out.pauses);
  if (out.failures && out.pauses && out.pauses->checkpoint)
    throw study.at(study.has("pauses") ? "pauses" : "failures")
        .error("checkpoints that failures make necessary are in `failures` already; leave out pauses.checkpoint");
  return out;
}

ConfigNode without_running_costs(const ConfigNode& platform) {
  ConfigNode out = platform;
  if (!platform.is_map()) return out;
  for (const char* block : kBlocks)
    if (platform.has(block)) out = out.without(block);
  return out;
}

Machines machines_of(const Cluster& cluster, const std::vector<DeviceId>& devices) {
  std::set<std::string> nodes;
  for (const DeviceId device : devices) nodes.insert(cluster.devices[static_cast<std::size_t>(device)].node);
  return {static_cast<double>(devices.size()), static_cast<double>(nodes.size())};
}

double expected_time(const FailureSetting& setting, double useful, double all, double nodes, double checkpoint_bytes) {
  const double write = setting.write_rate ? checkpoint_bytes / *setting.write_rate : setting.write;
  return expected_time({setting.node_mtbf / nodes, write, setting.restart, setting.checkpoint}, useful, all);
}

double rent(const Price& price, const Machines& machines, double seconds) {
  return price.per_hour * (price.of_node ? machines.nodes : machines.devices) * seconds / kHour;
}

double energy(const PowerSetting& power, const Machines& machines, double seconds, double busy) {
  const auto mean = [&](const PowerDraw& draw) { return draw.idle + busy * (draw.busy - draw.idle); };
  return power.overhead * seconds * (machines.devices * mean(power.device) + machines.nodes * mean(power.node));
}

}  // namespace epocast
