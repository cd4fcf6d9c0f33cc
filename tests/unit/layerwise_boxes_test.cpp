// Which part of which tensor a part of an operator needs, element by element against the operator's own definition.
#include <catch2/catch.hpp>

#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "strategies/layerwise/tile_times.hpp"
#include "tests/support/layerwise.hpp"

namespace epocast::layerwise_boxes_test {

namespace {

struct Element {
  std::int64_t n = 0, c = 0, h = 0, w = 0;
};

/// Whether an element of the input goes into an element of the output, for a range of the reduction dimension.
using Reads = std::function<bool(const Element& in, const Element& out, IndexRange k)>;

struct Pair {
  Model model;  ///< input, producer, maybe a second one, consumer
  Reads reads;  ///< of the consumer's first input
};

std::int64_t draw(std::mt19937& random, std::int64_t least, std::int64_t most) {
  return std::uniform_int_distribution<std::int64_t>(least, most)(random);
}

Layer producer(const char* name, const Shape& shape) {
  Layer layer;
  layer.name = name;
  layer.kind = LayerKind::convolution;
  layer.inputs = {0};
  layer.input = shape;
  layer.output = shape;
  layer.kernel_height = layer.kernel_width = 1;
  layer.needs_gradient = true;
  layer.parameters = {{std::string(name) + ".weight", shape.channels * shape.channels}};
  return layer;
}

Layer network_input(const Shape& shape) {
  Layer data = producer("data", shape);
  data.kind = LayerKind::input;
  data.inputs = {};
  return data;
}

bool in_window(std::int64_t in, std::int64_t out, int stride, int kernel, int padding) {
  for (int tap = 0; tap < kernel; ++tap)
    if (out * stride - padding + tap == in) return true;
  return false;
}

/// A producer and one of the kinds of operators behind it, of random size.
Pair random_pair(std::mt19937& random) {
  Pair out;
  Shape shape{draw(random, 1, 12), draw(random, 1, 9), draw(random, 1, 9)};
  Layer last;
  last.name = "last";
  last.inputs = {1};
  last.needs_gradient = true;
  const auto window = [&] {
    last.kernel_height = static_cast<int>(draw(random, 1, std::min<std::int64_t>(4, shape.height)));
    last.kernel_width = static_cast<int>(draw(random, 1, std::min<std::int64_t>(4, shape.width)));
    // No further apart than the windows are long: else rows between them are in the box, which nobody reads.
    last.stride = static_cast<int>(draw(random, 1, std::min(last.kernel_height, last.kernel_width)));
    last.padding_height = static_cast<int>(draw(random, 0, last.kernel_height / 2));
    last.padding_width = static_cast<int>(draw(random, 0, last.kernel_width / 2));
    last.output.height = (shape.height + 2 * last.padding_height - last.kernel_height) / last.stride + 1;
    last.output.width = (shape.width + 2 * last.padding_width - last.kernel_width) / last.stride + 1;
  };
  const auto touches = [](const Layer& layer) {
    return [layer](const Element& in, const Element& to) {
      return in.n == to.n && in_window(in.h, to.h, layer.stride, layer.kernel_height, layer.padding_height) &&
             in_window(in.w, to.w, layer.stride, layer.kernel_width, layer.padding_width);
    };
  };
  const auto same_place = [](const Element& in, const Element& to) {
    return in.n == to.n && in.h == to.h && in.w == to.w;
  };
  Layer second;
  switch (draw(random, 0, 10)) {
    case 0:
      last.kind = LayerKind::convolution;
      last.output.channels = draw(random, 1, 12);
      window();
      out.reads = [reads = touches(last)](const Element& in, const Element& to, IndexRange k) {
        return reads(in, to) && k.contains(in.c);
      };
      break;
    case 1: {
      last.kind = LayerKind::convolution;
      last.groups = static_cast<int>(draw(random, 2, 4));
      const std::int64_t read = draw(random, 1, 3), made = draw(random, 1, 3);
      shape.channels = last.groups * read;
      last.output.channels = last.groups * made;
      window();
      out.reads = [reads = touches(last), read, made](const Element& in, const Element& to, IndexRange) {
        return reads(in, to) && in.c / read == to.c / made;
      };
      break;
    }
    case 2:
      last.kind = LayerKind::pooling;
      last.output.channels = shape.channels;
      window();
      out.reads = [reads = touches(last)](const Element& in, const Element& to, IndexRange) {
        return reads(in, to) && in.c == to.c;
      };
      break;
    case 9:
      last.kind = LayerKind::convolution;
      last.variant = "transposed";
      last.output.channels = draw(random, 1, 12);
      window();
      last.output.height = (shape.height - 1) * last.stride - 2 * last.padding_height + last.kernel_height;
      last.output.width = (shape.width - 1) * last.stride - 2 * last.padding_width + last.kernel_width;
      // The windows of the convolution that it is the gradient of.
      out.reads = [reads = touches(last)](const Element& in, const Element& to, IndexRange k) {
        return reads({to.n, to.c, to.h, to.w}, {in.n, in.c, in.h, in.w}) && k.contains(in.c);
      };
      break;
    case 3:
      last.kind = LayerKind::fully_connected;
      last.output.channels = draw(random, 1, 16);
      out.reads = [](const Element& in, const Element& to, IndexRange k) { return in.n == to.n && k.contains(in.c); };
      break;
    case 4:
      last.kind = LayerKind::linear;
      last.output = {draw(random, 1, 16), shape.height, shape.width};
      out.reads = [same_place](const Element& in, const Element& to, IndexRange k) {
        return same_place(in, to) && k.contains(in.c);
      };
      break;
    case 5:
      last.kind = LayerKind::layer_norm;
      last.output = shape;
      out.reads = [same_place](const Element& in, const Element& to, IndexRange) { return same_place(in, to); };
      break;
    case 6:
      last.kind = LayerKind::local_response_norm;
      last.output = shape;
      last.neighbours = static_cast<int>(2 * draw(random, 0, 2) + 1);
      out.reads = [same_place, reach = last.neighbours / 2](const Element& in, const Element& to, IndexRange) {
        return same_place(in, to) && std::abs(in.c - to.c) <= reach;
      };
      break;
    case 7:
      last.kind = LayerKind::add;
      last.output = shape;
      last.inputs = {1, 2};
      second = producer("second", shape);
      out.reads = [same_place](const Element& in, const Element& to, IndexRange) {
        return same_place(in, to) && in.c == to.c;
      };
      break;
    case 8: {
      // The producer comes second, behind so many channels of another one.
      last.kind = LayerKind::concat;
      Shape other = shape;
      other.channels = draw(random, 1, 8);
      second = producer("second", other);
      last.inputs = {2, 1};
      last.output = {shape.channels + other.channels, shape.height, shape.width};
      out.reads = [same_place, before = other.channels](const Element& in, const Element& to, IndexRange) {
        return same_place(in, to) && in.c + before == to.c;
      };
      break;
    }
    default: {
      // Queries of several heads share a head of keys and values; what one such group reads lies together.
      last.kind = LayerKind::attention;
      last.kv_heads = static_cast<int>(draw(random, 1, 4));
      const std::int64_t shared = draw(random, 1, 2), features = draw(random, 1, 3);
      last.heads = static_cast<int>(last.kv_heads * shared);
      shape = {last.kv_heads * (shared + 2) * features, 1, shape.width};
      last.output = {last.heads * features, 1, shape.width};
      out.reads = [read = (shared + 2) * features, made = shared * features](const Element& in, const Element& to,
                                                                             IndexRange) {
        return in.n == to.n && in.c / read == to.c / made;
      };
    }
  }
  Layer data;
  data.name = "data";
  data.output = shape;
  out.model.layers = {data, producer("first", shape)};
  if (!second.name.empty()) out.model.layers.push_back(second);
  last.input = out.model.layers[static_cast<std::size_t>(last.inputs.front())].output;
  out.model.layers.push_back(last);
  return out;
}

template <class Visit>
void for_each_element(const Box& box, Visit visit) {
  for (std::int64_t n = box.n.begin; n < box.n.end; ++n)
    for (std::int64_t c = box.c.begin; c < box.c.end; ++c)
      for (std::int64_t h = box.h.begin; h < box.h.end; ++h)
        for (std::int64_t w = box.w.begin; w < box.w.end; ++w) visit(Element{n, c, h, w});
}

}  // namespace

TEST_CASE("parts of a dimension differ by one at most and are all of it", "[layerwise]") {
  for (std::int64_t extent = 1; extent < 40; ++extent)
    for (std::int64_t parts = 1; parts <= extent; ++parts) {
      std::int64_t end = 0;
      for (std::int64_t p = 0; p < parts; ++p) {
        const IndexRange part = part_of(extent, parts, p);
        CHECK(part.begin == end);
        CHECK((part.size() == extent / parts || part.size() == extent / parts + 1));
        end = part.end;
      }
      CHECK(end == extent);
    }
}

TEST_CASE("a part receives what it needs, each element once, from one that holds it", "[layerwise]") {
  std::mt19937 random(17);
  int moved = 0;
  for (int trial = 0; trial < 500; ++trial) {
    const Pair pair = random_pair(random);
    const OperatorNetwork network(pair.model);
    const std::int64_t batch = draw(random, 1, 5);
    const int workers = static_cast<int>(draw(random, 1, 12));
    const std::size_t from = 0, to = network.size() - 1;
    std::size_t input = 0;
    while (network.at(to).inputs[input].from != from) ++input;
    const auto divide = [&](std::size_t op) {
      const Degrees degrees = testing::random_degrees(random, network, op, batch, workers);
      return Division(network, op, degrees, batch, testing::random_devices(random, degrees.product(), workers));
    };
    const Division source = divide(from), target = divide(to);
    INFO("trial " << trial << ": " << to_string(pair.model.layers.back().kind) << " " << source.degrees().text()
                  << " to " << target.degrees().text());
    const Shape& shape = network.at(from).output;
    const auto position = [&](const Element& e) {
      return static_cast<std::size_t>(((e.n * shape.channels + e.c) * shape.height + e.h) * shape.width + e.w);
    };
    const auto all = static_cast<std::size_t>(batch * shape.values());

    // What is held is all of the output, each element once.
    std::vector<int> held(all, 0);
    for (std::size_t i = 0; i < source.places(); ++i)
      for_each_element(source.held(i), [&](const Element& e) { ++held[position(e)]; });
    REQUIRE(std::ranges::all_of(held, [](int times) { return times == 1; }));

    const std::vector<Piece> sent = pieces(source, target, input);
    for (std::size_t j = 0; j < target.places(); ++j) {
      std::vector<int> wanted(all, 0), got(all, 0);
      const Tile& tile = target.tile(j);
      for_each_element({{0, batch}, {0, shape.channels}, {0, shape.height}, {0, shape.width}}, [&](const Element& in) {
        bool needed = false;
        for_each_element(tile.output, [&](const Element& out) { needed = needed || pair.reads(in, out, tile.k); });
        wanted[position(in)] = needed ? 1 : 0;
      });
      for (const Piece& piece : sent) {
        if (piece.to != j) continue;
        const Box box = intersection(source.held(piece.from), target.needed(target.op().inputs[input], j));
        CHECK(box.values() == piece.values);
        CHECK(piece.local == (source.device(piece.from) == target.device(j)));
        for_each_element(box, [&](const Element& e) { ++got[position(e)]; });
        if (!piece.local) ++moved;
      }
      REQUIRE(got == wanted);
    }
  }
  CHECK(moved > 1000);
}

TEST_CASE("places that add up their sums hold the sum once", "[layerwise]") {
  // 8 images of 6 channels on 5 x 7, from 12 channels, of which three places have four each.
  Model model;
  const Layer data = network_input({12, 5, 7});
  Layer conv = producer("conv", {12, 5, 7});
  conv.output.channels = 6;
  model.layers = {data, conv};
  const OperatorNetwork network(model);
  Degrees degrees;
  degrees[Dimension::k] = 3;
  const Division division(network, 0, degrees, 8, {0, 1, 2});
  // Each place makes sums for all 8 x 6 x 5 x 7 = 1680 values, keeps a third of the images (2, 3, 3) and is sent that
  // third by two others: in all 2/3 of three times 1680.
  CHECK(division.tile(1).k == IndexRange{4, 8});
  CHECK(division.held(0).n.size() == 2);
  CHECK(sent_values(sum_pieces(division)) == 2 * 1680);
}

TEST_CASE("half of the channels of a grouped convolution has half of its groups", "[layerwise]") {
  Model model;
  const Layer data = network_input({8, 5, 7});
  Layer conv = producer("conv", {8, 5, 7});
  conv.groups = 4;
  model.layers = {data, conv};
  const OperatorNetwork network(model);
  Degrees degrees;
  degrees[Dimension::c] = 2;
  const Division division(network, 0, degrees, 1, {0, 1});
  const Layer part = part_of_layer(network, 0, 1, division.tile(1));
  CHECK(part.groups == 2);
  CHECK(part.output.channels == 4);
}

TEST_CASE("1x1 windows two apart are sent with what lies between them", "[layerwise]") {
  Model model;
  const Layer data = network_input({1, 8, 8});
  Layer down = producer("down", {1, 8, 8});
  down.inputs = {1};
  down.output = {1, 4, 4};
  down.stride = 2;
  model.layers = {data, producer("first", {1, 8, 8}), down};
  const OperatorNetwork network(model);
  Degrees rows;
  rows[Dimension::h] = 2;
  const Division target(network, 1, rows, 1, {0, 1});
  // Output rows 2 and 3 read rows 4 and 6.
  CHECK(target.needed(target.op().inputs.front(), 1).h == IndexRange{4, 7});
}

TEST_CASE("rows that dilated and transposed windows read", "[layerwise]") {
  Model model;
  Layer next = producer("next", {1, 8, 8});
  next.inputs = {1};
  next.kernel_height = next.kernel_width = 3;
  const auto rows = [&](std::int64_t height, std::int64_t parts, std::size_t part) {
    next.output = {1, height, height};
    model.layers = {network_input({1, 8, 8}), producer("first", {1, 8, 8}), next};
    const OperatorNetwork network(model);
    Degrees degrees;
    degrees[Dimension::h] = static_cast<int>(parts);
    std::vector<int> devices(static_cast<std::size_t>(parts));
    for (std::size_t d = 0; d < devices.size(); ++d) devices[d] = static_cast<int>(d);
    const Division target(network, 1, degrees, 1, devices);
    return target.needed(target.op().inputs.front(), part).h;
  };
  // Taps two apart: output rows 4 to 7 read rows 2 to 9, of which there are 8.
  next.dilation = 2;
  next.padding_height = next.padding_width = 2;
  CHECK(rows(8, 2, 1) == IndexRange{2, 8});
  // Transposed, stride 2, padding 1: input i makes rows 2i - 1 to 2i + 1 of 15.
  next.dilation = 1;
  next.padding_height = next.padding_width = 1;
  next.stride = 2;
  next.variant = "transposed";
  CHECK(rows(15, 3, 0) == IndexRange{0, 3});  // rows 0 to 4
  CHECK(rows(15, 3, 1) == IndexRange{2, 6});  // rows 5 to 9: from 2, which reaches 5, to 5, which begins at 9
}

TEST_CASE("a part of a map is all of its positions in the vector behind it", "[layerwise]") {
  Model model;
  Layer flat = producer("flat", {4, 2, 2});
  flat.kind = LayerKind::flatten;
  flat.parameters = {};
  flat.inputs = {1};
  flat.output = {16, 1, 1};
  Layer dense = producer("dense", {16, 1, 1});
  dense.kind = LayerKind::fully_connected;
  dense.inputs = {2};
  model.layers = {network_input({4, 2, 2}), producer("conv", {4, 2, 2}), flat, dense};
  const OperatorNetwork network(model);
  REQUIRE(network.at(0).layers == std::vector<std::size_t>{1, 2});
  Tile half;
  half.output = {{0, 1}, {0, 2}, {0, 2}, {0, 2}};  // two of four channels, all of their 2 x 2 positions
  CHECK(network.of_layer(0, 2, half).output.c.size() == 2 * 2 * 2);
}

TEST_CASE("a view of a view, and a vector under another name, are no operators", "[layerwise]") {
  Model model;
  const auto view = [](const char* name, int input, const Shape& of) {
    Layer out = producer(name, of);
    out.kind = LayerKind::flatten;
    out.parameters = {};
    out.inputs = {input};
    out.output = {of.channels * of.positions(), 1, 1};
    return out;
  };
  const auto dense = [](const char* name, int input) {
    Layer out = producer(name, {16, 1, 1});
    out.kind = LayerKind::fully_connected;
    out.inputs = {input};
    return out;
  };
  Layer last = producer("softmax", {16, 1, 1});
  last.kind = LayerKind::softmax;
  last.parameters = {};
  last.inputs = {6};
  model.layers = {
      network_input({4, 2, 2}), producer("conv", {4, 2, 2}), view("flat", 1, {4, 2, 2}),   view("again", 2, {16, 1, 1}),
      dense("dense", 3),        view("same", 4, {16, 1, 1}), view("still", 5, {16, 1, 1}), last};
  const OperatorNetwork network(model);
  REQUIRE(network.size() == 2);
  CHECK(network.at(0).layers == std::vector<std::size_t>{1, 2, 3});
  CHECK(network.at(1).layers == std::vector<std::size_t>{4, 5, 6, 7});
}

TEST_CASE("bytes between equal configurations of a 3x3 convolution", "[layerwise]") {
  // 64 to 64 channels on 28 x 28, 8 images, forward, 4 B a value: one tensor has 8 x 64 x 784 x 4 = 1,605,632 B.
  Model model;
  const Layer data = network_input({64, 28, 28});
  Layer conv = producer("conv", {64, 28, 28});
  conv.inputs = {1};
  conv.kernel_height = conv.kernel_width = 3;
  conv.padding_height = conv.padding_width = 1;
  model.layers = {data, producer("first", {64, 28, 28}), conv};
  const OperatorNetwork network(model);
  const auto moved = [&](Degrees degrees) {
    const std::vector<int> devices = devices_of(degrees.product(), 4, PlaceRule::packed);
    return 4 *
           sent_values(pieces(Division(network, 0, degrees, 8, devices), Division(network, 1, degrees, 8, devices), 0));
  };
  // Channels: each of four lacks three quarters. Rows: three borders, a row of 28 x 64 x 8 each way. Rows and columns:
  // a row and a column of 14 for each of four, and a corner.
  CHECK(moved({{1, 4, 1, 1, 1}}) == 3 * 1605632);
  CHECK(moved({{1, 1, 4, 1, 1}}) == 4 * 6 * 28 * 64 * 8);
  CHECK(moved({{1, 1, 2, 2, 1}}) == 4 * 4 * (14 + 14 + 1) * 64 * 8);
  CHECK(moved({{4, 1, 1, 1, 1}}) == 0);
}

TEST_CASE("operators: convolution, normalisation and activation are one", "[layerwise]") {
  CHECK(OperatorNetwork(*testing::shipped_model("inception_v3")).size() == 120);
  const OperatorNetwork vgg(*testing::shipped_model("vgg16"));
  CHECK(vgg.size() == 13 + 5 + 3);
  CHECK(vgg.at(vgg.size() - 3).name == "fc6");
  CHECK(vgg.at(vgg.size() - 3).reduction == 512);  // maps, each with its 49 positions
  CHECK(all_degrees(16, {512, 512, 512, 512, 1}).size() == 70);
}

}  // namespace epocast::layerwise_boxes_test
