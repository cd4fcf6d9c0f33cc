#include "platforms/platform_loader.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "platforms/probe.hpp"
#include "sim/error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace epocast::platform_test {

namespace {

const std::filesystem::path kPlatforms = std::filesystem::path(EPOCAST_SOURCE_DIR) / "platforms";

constexpr const char* kHead =
    "<?xml version=\"1.0\"?>\n"
    "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
    "<platform version=\"4.1\">\n";
constexpr const char* kFigures =
    "<prop id=\"epocast.device_model\" value=\"a GPU\"/><prop id=\"epocast.memory\" value=\"16 GB\"/>"
    "<prop id=\"epocast.memory_bandwidth\" value=\"900 GB/s\"/>";

// A document around the inside of <platform>, which starts in line 4.
std::string document(const std::string& body) { return kHead + body + "\n</platform>\n"; }

// A document with one zone that has all figures; its contents start in line 5.
std::string zone(const std::string& contents, const std::string& routing = "Full") {
  return document("<zone id=\"w\" routing=\"" + routing + "\">" + kFigures + "\n" + contents + "</zone>");
}

std::string cluster(const std::string& attributes) {
  return zone("<cluster id=\"c\" prefix=\"h\" suffix=\"\" " + attributes);
}

std::string message(const std::string& text) {
  try {
    parse_platform(text, "f.xml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

std::vector<std::string> device_names(const Cluster& cluster) {
  std::vector<std::string> out;
  for (const Device& device : cluster.devices) out.push_back(device.name);
  return out;
}

std::string probe_message(const std::string& text, Seconds limit = Seconds(60)) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path file = folder.write("platform.xml", text);
  try {
    probe_platform(file, limit);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

const std::string kHosts = "<host id=\"a\" speed=\"1Tf\"/><host id=\"b\" speed=\"1Tf\"/>";
const std::string kLink = "<link id=\"l\" bandwidth=\"1GBps\" latency=\"1us\"/>";
const std::string kRoute = "<route src=\"a\" dst=\"b\"><link_ctn id=\"l\"/></route>";

// Two nodes of GPUs, joined by a switch in a zone of its own, over the shortest path.
std::string two_nodes() {
  std::string out;
  for (const std::string n : {"0", "1"})
    out += "<zone id=\"n" + n + "\" routing=\"Full\"><prop id=\"epocast.node\" value=\"node" + n + "\"/>" +
           "<host id=\"a" + n + "\" speed=\"1Tf\"/><host id=\"b" + n + "\" speed=\"1Tf\"/><router id=\"r" + n + "\"/>" +
           "<link id=\"x" + n + "\" bandwidth=\"50GBps\" latency=\"1us\" sharing_policy=\"SPLITDUPLEX\"/>" +
           "<link id=\"y" + n + "\" bandwidth=\"50GBps\" latency=\"1us\" sharing_policy=\"SPLITDUPLEX\"/>" +
           "<route src=\"a" + n + "\" dst=\"b" + n + "\"><link_ctn id=\"x" + n +
           "\" direction=\"UP\"/><link_ctn id=\"y" + n + "\" direction=\"DOWN\"/></route><route src=\"a" + n +
           "\" dst=\"r" + n + "\"><link_ctn id=\"x" + n + "\" direction=\"UP\"/></route>\n<route src=\"b" + n +
           "\" dst=\"r" + n + "\"><link_ctn id=\"y" + n + "\" direction=\"UP\"/></route></zone>\n";
  out += "<zone id=\"core\" routing=\"None\"><router id=\"switch\"/></zone>";
  for (const std::string n : {"0", "1"})
    out += "<link id=\"nic" + n + "\" bandwidth=\"12.5GBps\" latency=\"1us\" sharing_policy=\"SPLITDUPLEX\"/>";
  for (const std::string n : {"0", "1"})
    out += "\n<zoneRoute src=\"n" + n + "\" dst=\"core\" gw_src=\"r" + n + "\" gw_dst=\"switch\"><link_ctn id=\"nic" +
           n + "\" direction=\"UP\"/></zoneRoute>";
  return zone(out, "Dijkstra");
}

}  // namespace

TEST_CASE("every shipped platform loads, names its sources, and is the same machine to SimGrid") {
  const std::vector<PlatformInfo> all = list_platforms(kPlatforms);
  REQUIRE(all.size() >= 4);
  for (const PlatformInfo& info : all) {
    CAPTURE(info.name, info.problem);
    REQUIRE(info.problem.empty());
    CHECK_FALSE(info.description.empty());
    const Cluster cluster = load_platform(kPlatforms / (info.name + ".xml"));
    CHECK(cluster.trainers() == info.devices);
    for (const char* key : {"device_model", "peak_rate", "memory", "memory_bandwidth", "cores"}) {
      CAPTURE(key);
      CHECK(cluster.sources.contains(key));
    }
    CHECK_NOTHROW(probe_platform(cluster));
  }
}

TEST_CASE("the Skylake cluster has the figures of its file") {
  const Cluster cluster = load_platform(kPlatforms / "skylake_opa.xml");
  CHECK(cluster.name == "skylake_opa");
  CHECK(cluster.homogeneous());
  REQUIRE(cluster.devices.size() == 64);
  const Device& device = cluster.devices.back();
  CHECK(device.name == "skl-63");
  CHECK(device.node == "skl-63");
  CHECK(device.model == "2x Intel Xeon Platinum 8180");
  CHECK(device.cores == 56);
  CHECK(device.peak_rate.value ==
        Approx(56 * 64 * 2.3e9).epsilon(1e-3));  // cores x FLOP/cycle x clock, three digits given
  CHECK(device.memory.value == 384e9);
  CHECK(device.memory_bandwidth.value == 255.9e9);
}

TEST_CASE("properties come from the innermost place, and speed x core is the default peak") {
  const Cluster cluster = parse_platform(
      zone("<host id=\"a\" speed=\"10Gf\" core=\"4\"><prop id=\"epocast.memory\" value=\"8 GiB\"/></host>"
           "<host id=\"b\" speed=\"1Tf\"><prop id=\"epocast.cores\" value=\"80\"/><prop id=\"epocast.node\" "
           "value=\"n\"/><prop id=\"source.cores\" value=\"a page\"/></host>" +
           kLink + kRoute),
      "dir/small.xml");
  CHECK(cluster.name == "small");
  REQUIRE(device_names(cluster) == std::vector<std::string>{"a", "b"});
  CHECK(cluster.devices[0].memory.value == 8 * 0x1p30);
  CHECK(cluster.devices[0].cores == 4);
  CHECK(cluster.devices[0].peak_rate.value == 40e9);
  CHECK(cluster.devices[0].node == "a");
  CHECK(cluster.devices[1].memory.value == 16e9);
  CHECK(cluster.devices[1].cores == 80);
  CHECK(cluster.devices[1].peak_rate.value == 1e12);
  CHECK(cluster.devices[1].node == "n");
  CHECK(cluster.sources.at("cores") == "a page");
  CHECK_FALSE(cluster.homogeneous());
}

TEST_CASE("valid shapes load, and SimGrid agrees") {
  struct Shape {
    const char* what;
    std::string text;
    std::vector<std::string> devices;
  };
  const std::vector<Shape> shapes = {
      {"full routing", zone(kHosts + kLink + kRoute), {"a", "b"}},
      {"one host without routes", zone("<host id=\"a\" speed=\"1Tf\"/>", "None"), {"a"}},
      {"links first", zone(kLink + kHosts + kRoute), {"a", "b"}},
      {"both directions apart",
       zone(kHosts + kLink +
            "<route src=\"a\" dst=\"b\" symmetrical=\"NO\"><link_ctn id=\"l\"/></route>"
            "<route src=\"b\" dst=\"a\" symmetrical=\"NO\"><link_ctn id=\"l\"/></route>"),
       {"a", "b"}},
      {"a direction of a split-duplex link by name",
       zone(kHosts + "<link id=\"l\" bandwidth=\"1GBps\" latency=\"0\" sharing_policy=\"SPLITDUPLEX\"/>" +
            "<route src=\"a\" dst=\"b\" symmetrical=\"NO\"><link_ctn id=\"l_UP\"/></route>"
            "<route src=\"b\" dst=\"a\" symmetrical=\"NO\"><link_ctn id=\"l\" direction=\"DOWN\"/></route>"),
       {"a", "b"}},
      {"a chain over shortest paths",
       zone(kHosts + "<host id=\"c\" speed=\"1Tf\"/>" + kLink + kRoute +
                "<route src=\"b\" dst=\"c\"><link_ctn id=\"l\"/></route>",
            "Floyd"),
       {"a", "b", "c"}},
      {"star", cluster("radical=\"0-1,7\" speed=\"1Tf\" bw=\"1GBps\" lat=\"1us\"/>"), {"h0", "h1", "h7"}},
      {"backbone",
       cluster("radical=\"0-1\" speed=\"1Tf\" bw=\"1GBps\" lat=\"1us\" bb_bw=\"8GBps\" bb_lat=\"1us\"/>"),
       {"h0", "h1"}},
      {"fat tree",
       cluster("radical=\"0-3\" speed=\"1Tf\" bw=\"1GBps\" lat=\"1us\" topology=\"FAT_TREE\" "
               "topo_parameters=\"2;2,2;1,2;1,1\"/>"),
       {"h0", "h1", "h2", "h3"}},
      {"torus",
       cluster("radical=\"0-3\" speed=\"1Tf\" bw=\"1GBps\" lat=\"1us\" topology=\"TORUS\" topo_parameters=\"2,2\"/>"),
       {"h0", "h1", "h2", "h3"}},
      {"two stars",
       zone("<cluster id=\"c\" prefix=\"g\" suffix=\"\" radical=\"0-1\" speed=\"1Tf\" bw=\"1GBps\" lat=\"1us\"/>"
            "<cluster id=\"d\" prefix=\"h\" suffix=\"x\" radical=\"0-1\" speed=\"1Tf\" bw=\"1GBps\" lat=\"1us\"/>" +
            kLink +
            "<zoneRoute src=\"c\" dst=\"d\" gw_src=\"gc_router\" gw_dst=\"hd_routerx\"><link_ctn "
            "id=\"l\"/></zoneRoute>"),
       {"g0", "g1", "h0x", "h1x"}},
      {"the old names of zones",
       document("<AS id=\"w\" routing=\"Full\">" + std::string(kFigures) + kHosts + kLink + kRoute + "</AS>"),
       {"a", "b"}},
      {"nodes around a switch", two_nodes(), {"a0", "b0", "a1", "b1"}},
  };
  for (const Shape& shape : shapes) {
    CAPTURE(shape.what);
    const testing::TemporaryFolder folder;
    const std::filesystem::path file = folder.write("platform.xml", shape.text);
    Cluster cluster;
    REQUIRE_NOTHROW(cluster = load_platform(file));
    CHECK(device_names(cluster) == shape.devices);
    CHECK_NOTHROW(probe_platform(cluster));
  }
  CHECK(parse_platform(two_nodes(), "f.xml").devices[2].node == "node1");
}

// '@' marks the place that the message has to name; it is taken out before the text is read.
TEST_CASE("a bad platform file gives one message with place and remedy") {
  struct Case {
    std::string text;
    std::string expected;  // the message after its place; only its start if it ends in "..."
  };
  const std::string star = "speed=\"1Tf\" bw=\"1GBps\" lat=\"1us\"/>";
  const std::string host = "<host id=\"a\" speed=\"1Tf\"/>";
  const auto replaced = [](std::string text, const std::string& from, const std::string& to) {
    REQUIRE(text.find(from) != std::string::npos);
    return text.replace(text.find(from), from.size(), to);
  };
  const auto mark = [&](const std::string& text, const std::string& at) { return replaced(text, at, "@" + at); };
  const std::string good = zone(kHosts + kLink + kRoute);
  const std::vector<Case> cases = {
      // Documents
      {"", "the file is empty; expected a SimGrid platform in XML"},
      {" \n ", "the file is empty..."},
      {"hell@o", "not well-formed XML: No document element found"},
      {std::string("<a@\0b>", 6), "not a text file: it contains a zero byte"},
      {"@\xEF\xBB\xBF<platform/>", "the file starts with a byte-order mark..."},
      {replaced(good, "></zone>\n</platform>\n", "@>"),
       "not well-formed XML: Start-end tags mismatch; the file seems to be cut off"},
      {replaced(good, "dst=\"b", "dst\"@b"), "not well-formed XML: Error parsing element attribute"},
      {"@<html></html>", "html: the root element is <html>, not <platform>: this is no SimGrid platform file"},
      {"@<platform version=\"4.1\"/>", "platform: missing before it: <!DOCTYPE platform SYSTEM..."},
      {replaced(good, "version=\"4.1", "@version=\"3"),
       "platform.version: format version '3' is not supported; write version=\"4.1\""},
      {good + "@<platform/>", "platform: second root element; a file holds one <platform>"},
      {mark(document(""), "<platform"), "platform: the platform is empty: it needs a <zone> or <cluster> with hosts"},
      {document("@<zone id=\"w\" routing=\"Full\"/>"),
       "zone[w]: the platform has no hosts; add <host> elements or a <cluster>"},
      {document("<zone id=\"w\" routing=\"Full\"/>@<zone id=\"x\" routing=\"Full\"/>"),
       "zone[x]: SimGrid takes one outer zone only: put all into one <zone>"},
      // Elements and attributes
      {zone("@<hosst id=\"a\" speed=\"1Tf\"/>"), "hosst[a]: unknown element <hosst> (did you mean 'host'?)"},
      {zone("  <host id=\"a\" @spede=\"1Tf\"/>"), "host[a].spede: unknown attribute of <host> (did you mean 'speed'?)"},
      {zone("@<host id=\"a\"/>"), "host[a]: missing attribute 'speed'"},
      {zone("<host @id=\"\" speed=\"1Tf\"/>"), "host[].id: is empty"},
      {zone("<host id=\"a\" @id=\"b\" speed=\"1Tf\"/>"), "host[a].id: attribute given twice"},
      {zone(host + "@text"), "zone[w]: text between the elements: remove it"},
      {zone("<host id=\"a\" speed=\"1Tf\" @speed_file=\"x\"/>"),
       "host[a].speed_file: capacities that vary with time are not supported: remove it"},
      {document("@<config id=\"x\"/>"), "config[x]: <config> is not supported; epocast chooses..."},
      {zone("@<peer id=\"p\"/>"), "peer[p]: <peer> is not supported; write <host>..."},
      {zone("@<link_ctn id=\"p\"/>"), "link_ctn[p]: a <zone> cannot hold a <link_ctn>"},
      {zone(host + "@<prop id=\"x\" value=\"y\"/>"), "prop[x]: properties go first in a zone: move this <prop> up"},
      {zone(kHosts + kLink + kRoute + "@<host id=\"c\" speed=\"1Tf\"/>"), "host[c]: routes go last in a zone..."},
      {zone("<zone id=\"x\" routing=\"Full\"/>@" + host), "host[a]: a zone holds either hosts or other zones..."},
      {zone(host + "@<zoneRoute src=\"a\" dst=\"a\" gw_src=\"a\" gw_dst=\"a\"/>"),
       "zoneRoute[a->a]: this zone holds hosts: write <route>"},
      {mark(zone(host, "Fulll"), "routing"), "zone[w].routing: unknown routing 'Fulll' (did you mean 'Full'?)"},
      {mark(zone(host, "Vivaldi"), "routing"), "zone[w].routing: unknown routing 'Vivaldi' (valid: ..."},
      // Names
      {zone(host + "\n<host @id=\"a\" speed=\"1Tf\"/>"),
       "host[a].id: the name 'a' is used twice; first by host[a] in line 5"},
      {zone("<host @id=\"w\" speed=\"1Tf\"/>"), "host[w].id: the name 'w' is used twice; first by zone[w] in line 4"},
      {zone(kHosts + kLink + mark(kLink, "id=")), "link[l].id: the link 'l' is defined twice"},
      {zone(kHosts + "<link @id=\"__loopback__\" bandwidth=\"1GBps\" latency=\"1us\"/>"),
       "link[__loopback__].id: SimGrid gives this name to a host's way to itself: choose another"},
      {cluster("@radical=\"0-3,2\" " + star), "cluster[c].radical: the name 'h2' is used twice..."},
      // Numbers
      {zone("<host id=\"a\" @speed=\"1\"/>"), "host[a].speed: missing unit: write '1Gf', not '1'"},
      {zone("<host id=\"a\" @speed=\"1 TFLOP/s\"/>"), "host[a].speed: unknown unit ' TFLOP/s': SimGrid writes '1Tf'"},
      {zone("<host id=\"a\" @speed=\"0Gf\"/>"), "host[a].speed: '0Gf' is no speed (accepted: 1kf to 1Ef)"},
      {zone("<host id=\"a\" @speed=\"-1Gf\"/>"), "host[a].speed: '-1Gf' is no speed..."},
      {zone("<host id=\"a\" @speed=\"nanGf\"/>"), "host[a].speed: number out of range in 'nanGf'"},
      {zone("<host id=\"a\" @speed=\"1e999Gf\"/>"), "host[a].speed: number out of range in '1e999Gf'"},
      {zone("<host id=\"a\" @speed=\"fast\"/>"), "host[a].speed: expected a speed such as '1Gf', got 'fast'"},
      {zone("<host id=\"a\" @speed=\"1Tf,2Tf\"/>"), "host[a].speed: a list of speeds is not supported..."},
      {zone("<host id=\"a\" speed=\"1Tf\" @core=\"0\"/>"), "host[a].core: expected a number of cores from 1..."},
      {zone("<link id=\"l\" @bandwidth=\"1GB/s\" latency=\"1us\"/>"),
       "link[l].bandwidth: unknown unit 'GB/s': SimGrid writes '1GBps'"},
      {zone("<link id=\"l\" @bandwidth=\"1gBps\" latency=\"1us\"/>"),
       "link[l].bandwidth: unknown unit 'gBps' of a bandwidth (did you mean..."},
      {zone("<link id=\"l\" @bandwidth=\"8\" latency=\"1us\"/>"),
       "link[l].bandwidth: missing unit: write '8GBps', not '8'"},
      {zone("<link id=\"l\" bandwidth=\"1GBps\" @latency=\"1\"/>"),
       "link[l].latency: missing unit: write '1us', not '1'"},
      {zone("<link id=\"l\" bandwidth=\"1GBps\" @latency=\"-1us\"/>"), "link[l].latency: '-1us' is no latency..."},
      {zone("@<link id=\"l\" bandwidth=\"1GBps\"/>"), "link[l]: missing attribute 'latency'"},
      {zone("<link id=\"l\" bandwidth=\"1GBps\" latency=\"1us\" @sharing_policy=\"SHARE\"/>"),
       "link[l].sharing_policy: unknown value 'SHARE' (did you mean 'SHARED'?)"},
      // Routes
      {mark(zone(kHosts + kLink), "<zone"), "zone[w]: no route from 'a' to 'b': add a <route> to this zone"},
      {mark(zone(kHosts, "None"), "<zone"), "zone[w]: no route from 'a' to 'b': routing=\"None\" joins nobody..."},
      {zone(kHosts + kLink + "@" + kRoute, "None"), "route[a->b]: a zone with routing=\"None\" has no routes..."},
      {mark(zone(kHosts + kLink + replaced(kRoute, "dst=\"b\"", "dst=\"b\" symmetrical=\"NO\"")), "<zone"),
       "zone[w]: no route from 'b' to 'a': add a <route> to this zone"},
      {mark(zone(kHosts + "<host id=\"c\" speed=\"1Tf\"/>" + kLink + kRoute, "Dijkstra"), "<zone"),
       "zone[w]: no route from 'c' to 'a': add a <route> to this zone"},
      {zone(kHosts + replaced(kRoute, "id=", "@id=")),
       "link_ctn[l].id: no link of this name is defined before this route"},
      {zone(kHosts + kLink + "<route src=\"a\" dst=\"b\"><link_ctn @id=\"ll\"/></route>"),
       "link_ctn[ll].id: no link of this name is defined before this route (did you mean 'l'?)"},
      {zone(kHosts + kLink + "<route src=\"a\" @dst=\"c\"><link_ctn id=\"l\"/></route>"),
       "route[a->c].dst: no host or router 'c' in zone 'w' (valid: a, b)"},
      {zone(kHosts + kLink + "@<route src=\"a\" dst=\"b\"/>"), "route[a->b]: the route has no links..."},
      {zone(kHosts + kLink + kRoute + "@<route src=\"b\" dst=\"a\"><link_ctn id=\"l\"/></route>"),
       "route[b->a]: this route was given before, in line 5 (routes hold for both directions..."},
      {zone(kHosts + replaced(kLink, "/>", " sharing_policy=\"SPLITDUPLEX\"/>") + mark(kRoute, "<link_ctn")),
       "link_ctn[l]: the link 'l' is split-duplex: say direction=\"UP\" or direction=\"DOWN\""},
      {zone(kHosts + kLink + replaced(kRoute, "id=\"l\"", "id=\"l\" @direction=\"UP\"")),
       "link_ctn[l].direction: the link 'l' is not split-duplex: remove the direction"},
      {replaced(two_nodes(), "gw_src=\"r0\"", "@gw_src=\"r1\""),
       "zoneRoute[n0->core].gw_src: the gateway 'r1' is no host..."},
      {replaced(two_nodes(), "src=\"n1\"", "@src=\"n2\""),
       "zoneRoute[n2->core].src: no zone 'n2' directly in zone 'w'..."},
      {replaced(mark(two_nodes(), "<zoneRoute"),
                "<route src=\"b0\" dst=\"r0\"><link_ctn id=\"y0\" direction=\"UP\"/></route>", ""),
       "zoneRoute[n0->core]: no route from 'b0' to 'r0' inside their zone, as this route between zones needs"},
      {mark(zone("<cluster id=\"c\" prefix=\"g\" suffix=\"\" radical=\"0\" " + star +
                 "<cluster id=\"d\" prefix=\"h\" suffix=\"\" radical=\"0\" " + star),
            "<zone"),
       "zone[w]: no route from 'c' to 'd': add a <zoneRoute> to this zone"},
      // Clusters
      {cluster("@radical=\"3-0\" " + star), "cluster[c].radical: the range '3-0' runs backwards and has no hosts"},
      {cluster("@radical=\"0-x\" " + star), "cluster[c].radical: expected host numbers such as '0-63'..."},
      {cluster("@radical=\"0-2000000000\" " + star), "cluster[c].radical: more than 1048576 hosts in one cluster"},
      {cluster("radical=\"0-7\" speed=\"1Tf\" @bw=\"0GBps\" lat=\"1us\"/>"),
       "cluster[c].bw: '0GBps' is no bandwidth..."},
      {replaced(cluster("radical=\"0-7\" topology=\"TORUS\" " + star), "<cluster", "@<cluster"),
       "cluster[c]: topology TORUS needs the attribute topo_parameters"},
      {cluster("radical=\"0-7\" topology=\"TORUS\" @topo_parameters=\"2,3\" " + star),
       "cluster[c].topo_parameters: TORUS '2,3' has room for 6 hosts, but radical '0-7' names 8"},
      {cluster("radical=\"0-7\" topology=\"FAT_TREE\" @topo_parameters=\"2;2,2;1,2;1,1\" " + star),
       "cluster[c].topo_parameters: FAT_TREE '2;2,2;1,2;1,1' has room for 4 hosts, but radical '0-7' names 8"},
      {cluster("radical=\"0-7\" topology=\"FAT_TREE\" @topo_parameters=\"2;8;1,2;1,1\" " + star),
       "cluster[c].topo_parameters: expected 2 numbers, one a level, in '8'"},
      {cluster("radical=\"0-7\" @topology=\"DRAGONFLY\" topo_parameters=\"2,1;2,1;2,1;2\" " + star),
       "cluster[c].topology: DRAGONFLY is not supported: SimGrid 3.32 crashes on it; write FAT_TREE, TORUS or zones"},
      // Properties
      {document("<zone id=\"w\" routing=\"Full\">@" + host + "</zone>"),
       "host[a]: missing property epocast.device_model: add <prop id=\"epocast.device_model\" value=..."},
      {replaced(good, "id=\"epocast.memory\"", "@id=\"epocast.memmory\""),
       "prop[epocast.memmory].id: unknown property of epocast (did you mean 'epocast.memory'?)"},
      {replaced(good, "value=\"16 GB", "@value=\"16"),
       "prop[epocast.memory].value: missing unit: write '16 GB', not '16'"},
      {replaced(good, "value=\"16 GB", "@value=\"0 GB"), "prop[epocast.memory].value: must be above zero, got '0 GB'"},
      {replaced(good, "value=\"16 GB", "@value=\"16 B"), "prop[epocast.memory].value: '16 B' is beyond reason..."},
      {replaced(good, "value=\"900 GB/s", "@value=\"900 GB"), "prop[epocast.memory_bandwidth].value: unit 'GB' is ..."},
      {zone("<host id=\"a\" speed=\"1Tf\"><prop id=\"epocast.peak_rate\" @value=\"2 TFLOP/s\"/></host>"),
       "prop[epocast.peak_rate].value: '2 TFLOP/s' contradicts speed=\"1Tf\" core=\"1\" of 'a'..."},
      {zone("<host id=\"a\" speed=\"1Tf\"><prop id=\"epocast.cores\" @value=\"4.5\"/></host>"),
       "prop[epocast.cores].value: expected a whole number from 1 to 1000000, got '4.5'"},
      {zone("<host id=\"a\" speed=\"1Tf\"><prop id=\"epocast.trains\" @value=\"no\"/></host>"),
       "prop[epocast.trains].value: expected true or false, got 'no'"},
      {zone("@<host id=\"a\" speed=\"1Tf\"><prop id=\"epocast.trains\" value=\"false\"/></host>"),
       "host[a]: no host of this platform trains; leave out epocast.trains of those that do"},
      {replaced(mark(good, "<host id=\"b\""), "<host id=\"a\" speed=\"1Tf\"/>",
                "<host id=\"a\" speed=\"1Tf\"><prop id=\"epocast.trains\" value=\"false\"/></host>"),
       "host[b]: host 'b' trains, and one before it does not; hosts with epocast.trains=\"false\" go last"},
      {zone("<zone id=\"v\" routing=\"None\"><prop id=\"x\" value=\"1\"/><prop @id=\"x\" value=\"1\"/>" + host +
            "</zone>"),
       "prop[x].id: property given twice"},
  };
  for (const Case& bad : cases) {
    std::string text = bad.text;
    std::string place = "f.xml";
    if (const std::size_t at = text.find('@'); at != std::string::npos) {
      text.erase(at, 1);
      const std::string before = text.substr(0, at);
      place += ":" + std::to_string(1 + std::ranges::count(before, '\n')) + ":" +
               std::to_string(at - (before.rfind('\n') + 1) + 1);  // rfind() is npos = -1 in the first line
    }
    const std::string expected = place + ": " + bad.expected;
    const std::string got = message(text);
    CAPTURE(text);
    CHECK(got.find('\n') == std::string::npos);
    if (expected.ends_with("..."))
      CHECK_THAT(got, Catch::StartsWith(expected.substr(0, expected.size() - 3)));
    else
      CHECK(got == expected);
  }
}

TEST_CASE("columns count characters, not bytes") {
  CHECK(message(zone("<!-- \u00b5\u00b5 --><host id=\"a\"/>")) == "f.xml:5:12: host[a]: missing attribute 'speed'");
}

TEST_CASE("a file that is not there, or is a folder, is named") {
  CHECK_THROWS_WITH(load_platform("no/such/platform.xml"), "no/such/platform.xml: no such file");
  CHECK_THROWS_WITH(load_platform(kPlatforms), kPlatforms.string() + ": is a directory, not a file");
}

TEST_CASE("a platform is named in a study by its name or by a path beside the study") {
  const std::filesystem::path data = EPOCAST_SOURCE_DIR;
  const auto named = [&](const std::string& value, const std::string& file) {
    return load_platform_named(ConfigNode::load_text("platform: " + value, file).at("platform"), data);
  };
  CHECK(named("skylake_10gbe", "s.yaml").name == "skylake_10gbe");
  CHECK(named("../platforms/skylake_opa.xml", (data / "docs" / "s.yaml").string()).name == "skylake_opa");
  CHECK_THROWS_WITH(named("skylake_10gb", "s.yaml"),
                    Catch::StartsWith("s.yaml:1:11: platform: unknown platform 'skylake_10gb' "
                                      "(did you mean 'skylake_10gbe'?)"));
}

TEST_CASE("a broken file in the folder is listed with its problem") {
  const testing::TemporaryFolder folder;
  folder.write("bad.xml", "<platform");
  folder.write("good.xml", zone(kHosts + kLink + kRoute));
  const std::vector<PlatformInfo> all = list_platforms(folder.path());
  REQUIRE(all.size() == 2);
  CHECK(all[0].name == "bad");
  CHECK_THAT(all[0].problem, Catch::Contains("not well-formed XML"));
  CHECK(all[1].devices == 2);
  CHECK(all[1].device_model == "a GPU");
  CHECK(list_platforms("no/such/folder").empty());
}

// These files go to SimGrid unchecked; it throws, aborts or crashes in the child.
TEST_CASE("the probe survives what kills SimGrid") {
  CHECK(probe_message(zone(kHosts + kLink + kRoute)) == "no error");
  CHECK_THAT(probe_message("<platform"), Catch::Contains("SimGrid rejects this platform: "));
  CHECK_THAT(probe_message(zone(kHosts + kLink)), Catch::Contains("route from a to b"));
  // Catchable only by a parent.
  CHECK_THAT(probe_message(zone(kHosts, "Fulll")), Catch::EndsWith("(Aborted): Not a valid model!"));
  CHECK_THAT(probe_message(zone(kHosts + kLink + kRoute + kRoute)),
             Catch::Contains("(Aborted): The route between a and b already exists"));
  const std::string dragonfly =
      probe_message(cluster("radical=\"0-7\" speed=\"1Tf\" bw=\"1GBps\" lat=\"1us\" topology=\"DRAGONFLY\" "
                            "topo_parameters=\"4,1;1,1;1,1;2\"/>"));
  CHECK_THAT(dragonfly, Catch::Contains("SimGrid "));
}

TEST_CASE("the probe stops SimGrid at the time limit") {
  CHECK_THAT(probe_message(zone(kHosts + kLink + kRoute), Seconds(0)),
             Catch::Contains("did not load this platform within 0 s"));
}

TEST_CASE("the probe notices when SimGrid sees other hosts") {
  const testing::TemporaryFolder folder;
  const std::filesystem::path file = folder.write("platform.xml", zone(kHosts + kLink + kRoute));
  Cluster cluster = load_platform(file);
  std::swap(cluster.devices[0], cluster.devices[1]);
  CHECK_THROWS_WITH(probe_platform(cluster), Catch::EndsWith("host 0 is 'a' for SimGrid, 'b' for epocast"));
  cluster.devices.pop_back();
  CHECK_THROWS_WITH(probe_platform(cluster), Catch::EndsWith("SimGrid makes 2 hosts, epocast reads 1"));
}

}  // namespace epocast::platform_test
