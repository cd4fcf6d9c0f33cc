// The yardstick of the message-level executor: a ring all_reduce the way a SimGrid user would write it, with one actor
// per rank and two-sided messages through mailboxes, on the same platform and network model as epocast's engine.
//
// usage: bare_simgrid_ring RANKS BYTES BANDWIDTH[B/s] LATENCY[s]
// Expected simulated time: 2(P-1) (latency + bytes/P/bandwidth), where the latency is that of the whole route.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace s4u = simgrid::s4u;

namespace {

/// A star of split-duplex links: each message crosses the sender's uplink and the receiver's downlink.
std::vector<s4u::Host*> create_star(int rank_count, double bandwidth, double route_latency) {
  s4u::NetZone* const zone = s4u::create_star_zone("star");
  std::vector<s4u::Host*> hosts;
  for (int rank = 0; rank < rank_count; ++rank) {
    const std::string name = "rank" + std::to_string(rank);
    s4u::Host* const host = zone->create_host(name, 1e9)->seal();
    s4u::Link* const link = zone->create_split_duplex_link(name + "_link", bandwidth)->set_latency(route_latency / 2);
    link->seal();
    zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr,
                    {s4u::LinkInRoute(link, s4u::LinkInRoute::Direction::UP)}, true);
    hosts.push_back(host);
  }
  zone->seal();
  return hosts;
}

void run_rank(int rank, int rank_count, std::uint64_t chunk_bytes) {
  s4u::Mailbox* const from_left = s4u::Mailbox::by_name(std::to_string(rank));
  s4u::Mailbox* const to_right = s4u::Mailbox::by_name(std::to_string((rank + 1) % rank_count));
  static int payload = 0;
  for (int step = 0; step < 2 * (rank_count - 1); ++step) {
    s4u::CommPtr sent = to_right->put_async(&payload, chunk_bytes);
    from_left->get<int>();
    sent->wait();
  }
}

}  // namespace

int main(int argc, char** argv) {
  s4u::Engine engine(&argc, argv);
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s RANKS BYTES BANDWIDTH[B/s] LATENCY[s]\n", argv[0]);
    return 2;
  }
  const int rank_count = std::atoi(argv[1]);
  const double bytes = std::atof(argv[2]);
  if (rank_count < 2) {
    std::fprintf(stderr, "at least 2 ranks are needed\n");
    return 2;
  }
  for (const char* option : {"network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0"})
    s4u::Engine::set_config(option);

  const std::vector<s4u::Host*> hosts = create_star(rank_count, std::atof(argv[3]), std::atof(argv[4]));
  const auto chunk_bytes = static_cast<std::uint64_t>(bytes / rank_count);
  for (int rank = 0; rank < rank_count; ++rank)
    s4u::Actor::create("rank", hosts[rank], [=] { run_rank(rank, rank_count, chunk_bytes); });

  const auto start = std::chrono::steady_clock::now();
  engine.run();
  const double wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("simulated_s %.12g wall_s %.4f messages %.0f\n", s4u::Engine::get_clock(), wall_s,
              2.0 * (rank_count - 1) * rank_count);
}
