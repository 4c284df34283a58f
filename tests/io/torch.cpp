#include <algorithm>
#include <cmath>
#include <isogloss/io/torch.hpp>
#include <isogloss/isogloss.hpp>
#include <limits>
#include <string>
#include <vector>

#include "catch.hpp"
#include "files.hpp"
#include "graphs.hpp"
#include "reference/torch_values.hpp"
#include "tolerance.hpp"

using namespace isogloss;
using namespace isogloss::io;
namespace theirs = reference::torch;

namespace {

// The model of reference/record_torch.py.
template <class T> struct Model {
    Graph<T> g{{.time = 4, .batch = 2}};
    Tokens x = g.tokens("x", 7), y = g.tokens("y", 7);
    Logits<T> o;

    Seq<T> both(const std::string& name, const Seq<T>& in) {
        auto right = g.template add<Lstm>(name + ".right", {.units = 2}, in);
        auto turned = g.template add<Reverse>(name + ".turned", {}, in, y);
        auto left = g.template add<Lstm>(name + ".left", {.units = 2}, turned);
        return g.template add<Concatenate>(name, {}, right,
                                           g.template add<Reverse>(name + ".back", {}, left, y));
    }
    Model() {
        auto e = g.template add<Embedding>("embed", {}, x, g.weight("E", 7, 3, uniform(0.1)));
        auto h = g.template add<Rnn>("up", {.units = 3}, both("two", both("one", e)));
        o = g.template add<Softmax>("softmax", {.vocabulary = 7},
                                    g.template add<Linear>("map", {.units = 2}, h));
    }
    std::vector<T> logits() {
        g.reset();
        g.forward(o, {x, {theirs::tokens.data(), 4, 2}}, {y, {theirs::tokens.data(), 4, 2}});
        const auto z = g.head(o).logits();
        return {z.begin(), z.end()};
    }
};

const std::vector<TorchLayer> layers = {{Torch::embedding, "encoder", "E"},
                                        {Torch::lstm, "both", "one.right"},
                                        {Torch::lstm, "both", "one.left", 0, true},
                                        {Torch::lstm, "both", "two.right", 1},
                                        {Torch::lstm, "both", "two.left", 1, true},
                                        {Torch::rnn, "up", "up"},
                                        {Torch::linear, "map", "map"},
                                        {Torch::head, "decoder", "softmax"}};

std::vector<theirs::Stored> dict() { return theirs::state_dict; }
theirs::Stored& at(std::vector<theirs::Stored>& all, const std::string& name) {
    return *std::ranges::find(all, name, &theirs::Stored::name);
}
void drop(std::vector<theirs::Stored>& all, const std::string& name) {
    std::erase_if(all, [&](const auto& t) { return t.name == name; });
}
Safetensors file_of(const TemporaryDirectory& dir, const std::vector<theirs::Stored>& tensors) {
    std::vector<TensorView> views;
    for (const auto& t : tensors) views.push_back(tensor_view<double>(t.name, t.shape, t.values));
    write_safetensors(dir / "theirs", views);
    return Safetensors::open(dir / "theirs");
}

}  // namespace

TEMPLATE_TEST_CASE("A model of PyTorch computes here what it computes there", "[io][torch]", float, double) {
    TemporaryDirectory dir;
    Model<TestType> m;
    m.g.gradient(m.g.weight("E"))(0, 0) = 1;
    CHECK(read_torch(file_of(dir, dict()), m.g, layers).empty());
    CHECK(m.g.gradient(m.g.weight("E"))(0, 0) == 0);
    const auto z = m.logits();
    REQUIRE(z.size() == theirs::logits.size());
    double apart = 0;
    for (std::size_t i = 0; i < z.size(); ++i)
        apart = worse(apart, std::abs(double(z[i]) - theirs::logits[i]));
    CHECK(apart < (std::is_same_v<TestType, double> ? 1e-14 : 1e-6));
}

TEST_CASE("Biases may be missing there, and what nobody asked for is named", "[io][torch]") {
    TemporaryDirectory dir;
    auto all = dict();
    drop(all, "map.bias"), drop(all, "up.bias_ih_l0"), drop(all, "up.bias_hh_l0");
    all.push_back({"extra", {1}, {1}});
    Model<double> m;
    m.g.value(m.g.weight("map.b"))(0, 0) = m.g.value(m.g.weight("up.b"))(0, 0) = 7;
    CHECK(read_torch(file_of(dir, all), m.g, layers) == std::vector<std::string>{"extra"});
    CHECK((m.g.value(m.g.weight("map.b"))(0, 0) == 0 && m.g.value(m.g.weight("up.b"))(0, 0) == 0));

    Graph<double> g({});  // a layer's own state dict, and a node without a bias
    g.add<Linear>("map", {.units = 2, .bias = false}, g.input("x", 3));
    const theirs::Stored weight{"weight", {2, 3}, {1, 2, 3, 4, 5, 6}}, bias{"bias", {2}, {1, 2}};
    CHECK(read_torch(file_of(dir, {weight}), g, {{Torch::linear, "", "map"}}).empty());
    CHECK(g.value(g.weight("map.W"))(2, 0) == 3);
    const std::vector<TorchLayer> plain = {{Torch::linear, "", "map"}};
    const auto with_bias = file_of(dir, {weight, bias});
    CHECK_THROWS_MATCHES(read_torch(with_bias, g, plain), FileError, says("'bias': 'map' has no bias"));
}

// The formula of torch.nn.GRU's documentation, in plain Python:
//     gi = [dot(w_ih[k], x[t][b]) + b_ih[k] for k in range(3 * n)]
//     gh = [dot(w_hh[k], h[b]) + b_hh[k] for k in range(3 * n)]
//     r = [s(gi[j] + gh[j]) for j in range(n)]
//     z = [s(gi[n + j] + gh[n + j]) for j in range(n)]
//     q = [math.tanh(gi[2 * n + j] + r[j] * gh[2 * n + j]) for j in range(n)]
//     h[b] = [(1 - z[j]) * q[j] + z[j] * h[b][j] for j in range(n)]
TEMPLATE_TEST_CASE("A GRU of PyTorch is one whose r comes after the product", "[io][torch]", float, double) {
    using T = TestType;
    const std::vector<double> h = {0.09201492662209733,  -0.11014098305213539, 0.08563234634276357,
                                   -0.07927521540643193, 0.26595672482411853,  -0.17806934735551702,
                                   0.1217244047916451,   -0.15365904120216706, 0.2398352622480495,
                                   -0.1562947237445113,  0.21746649707664328,  -0.21519987155713233};
    const std::vector<double> given = {0.2,  -0.14, -0.68, -0.39, 0.63,  -0.91, -0.91, 0.25, -0.44,
                                       0.07, -0.06, -0.31, 0.99,  -0.61, -0.17, -0.59, 0.27, -0.45};
    const std::vector<T> in(given.begin(), given.end());
    std::vector<theirs::Stored> all = {
        {"gru.weight_ih_l1_reverse",
         {6, 3},
         {-0.53, -0.79, -0.21, -0.69, -0.87, -0.2, 0.84, 0.6, 0.53, -0.56, 0.07, -0.45, -0.65, -0.79, -0.57,
          0.85, 0.66, 0.61}},
        {"gru.weight_hh_l1_reverse",
         {6, 2},
         {0.6, -0.61, -0.38, 0.25, 0.46, 0.71, 0.76, -0.83, 0.21, 0.34, 0.01, -0.64}},
        {"gru.bias_ih_l1_reverse", {6}, {-0.05, -0.82, 0.87, 0.73, 0.1, -0.4}},
        {"gru.bias_hh_l1_reverse", {6}, {0.82, 0.14, 0.76, 0.7, 0.02, -0.17}}};
    TemporaryDirectory dir;
    Graph<T> g({.time = 3, .batch = 2});
    const auto x = g.input("x", 3);
    const auto y = g.template add<Gru>("cell", {.units = 2, .reset_after = true}, x);
    const TorchLayer layer{Torch::gru, "gru", "cell", 1, true};
    CHECK(read_torch(file_of(dir, all), g, {layer}).empty());
    g.forward(y, {x, in.data(), 3, 2});
    CHECK(apart(flat(g.value(y)), h) < (std::is_same_v<T, double> ? 1e-15 : 1e-6));

    Graph<T> other({});
    other.template add<Gru>("cell", {.units = 2}, other.input("x", 3));
    const auto whole = file_of(dir, all);
    CHECK_THROWS_MATCHES(read_torch(whole, other, {layer}), UsageError, says("'cell.cq'"));
    drop(all, "gru.bias_ih_l1_reverse"), drop(all, "gru.bias_hh_l1_reverse");
    const auto without = file_of(dir, all);
    CHECK_THROWS_MATCHES(read_torch(without, other, {layer}), UsageError, says("'cell.cq'"));
    CHECK(read_torch(without, g, {layer}).empty());
    CHECK(flat(g.value(g.weight("cell.cq"))) == Numbers{0, 0});
    at(all, "gru.weight_ih_l1_reverse").shape = {3, 6};
    const auto turned = file_of(dir, all);
    CHECK_THROWS_MATCHES(read_torch(turned, g, {layer}), FileError, says("expected [6, 3]", "'cell.W'"));
}

TEST_CASE("A tied head is read once, and must be tied there too", "[io][torch]") {
    TemporaryDirectory dir;
    Graph<double> g({});
    auto E = g.weight("E", 3, 2, uniform(0.1));
    g.add<TiedSoftmax>("softmax", {.bias = true}, g.add<Embedding>("embed", {}, g.tokens("x", 3), E), E);
    const std::vector<TorchLayer> tied = {
        {Torch::embedding, "encoder", "E"},
        {.type = Torch::head, .theirs = "decoder", .ours = "softmax", .table = "E"}};
    std::vector<theirs::Stored> all = {{"encoder.weight", {3, 2}, {1, 2, 3, 4, 5, 6}},
                                       {"decoder.weight", {3, 2}, {1, 2, 3, 4, 5, 6}},
                                       {"decoder.bias", {3}, {7, 8, 9}}};
    CHECK(read_torch(file_of(dir, all), g, tied).empty());
    CHECK((g.value(E)(1, 0) == 3 && g.value(g.weight("softmax.b"))(0, 2) == 9));
    all[1].values[5] = 6.5;
    CHECK_THROWS_MATCHES(read_torch(file_of(dir, all), g, tied), FileError,
                         says("'decoder.weight' differs", "'E'"));
    CHECK(g.value(E)(2, 1) == 6);
}

TEMPLATE_TEST_CASE("What does not fit is refused, and nothing is read", "[io][torch][errors]", float,
                   double) {
    using T = TestType;
    TemporaryDirectory dir;
    Model<T> m;
    const auto before = m.logits();
    const auto refused = [&](const std::vector<theirs::Stored>& all, const auto&... reason) {
        CHECK_THROWS_MATCHES(read_torch(file_of(dir, all), m.g, layers), FileError, says(reason...));
        CHECK(m.logits() == before);
    };
    auto all = dict();
    drop(all, "map.weight");
    refused(all, "map.weight");
    all = dict();
    drop(all, "both.bias_hh_l1");
    refused(all, "both.bias_hh_l1");
    all = dict();
    at(all, "decoder.weight").shape = {2, 7};
    refused(all, "'decoder.weight' is [2, 7], expected [7, 2]");
    all = dict();  // of a GRU
    at(all, "up.weight_hh_l0") = {"up.weight_hh_l0", {9, 3}, std::vector<double>(27)};
    refused(all, "'up.weight_hh_l0' is [9, 3], expected [3, 3]");
    all = dict();
    at(all, "up.weight_hh_l0").values[3] = std::numeric_limits<double>::quiet_NaN();
    refused(all, "nan in 'up.weight_hh_l0'");
    if (std::is_same_v<T, float>) {
        all = dict();
        at(all, "up.bias_ih_l0").values[1] = at(all, "up.bias_hh_l0").values[1] = 3e38;  // each a float
        refused(all, "inf in 'up.bias_ih_l0'");
    }

    const auto whole = file_of(dir, dict());
    const auto read = [&](auto& g, const TorchLayer& layer) { return read_torch(whole, g, {layer}); };
    CHECK_THROWS_MATCHES(read(m.g, {Torch::linear, "map", "mop"}), UsageError, says("'mop.W'"));
    CHECK_THROWS_MATCHES(read(m.g, {Torch::lstm, "both", "one.right", -1}), UsageError, says("layer = -1"));
    CHECK_THROWS_MATCHES(read(m.g, {Torch::rnn, "both", "up"}), FileError, says("'both.weight_ih_l0' is"));
    CHECK_THROWS_MATCHES(
        read_torch(whole, m.g, {{Torch::embedding, "encoder", "E"}, {Torch::embedding, "map", "E"}}),
        FileError, says("'map.weight'"));

    const std::vector<std::int64_t> counts(21);
    write_safetensors(dir / "counts",
                      std::vector{tensor_view<std::int64_t>("encoder.weight", {7, 3}, counts)});
    const auto integers = Safetensors::open(dir / "counts");
    CHECK_THROWS_MATCHES(read_torch(integers, m.g, {layers[0]}), FileError,
                         says("'encoder.weight' is I64, expected F16"));

    Graph<T> held({}), owner({});
    held.weight("E", 7, 3, uniform(0.1), {.unit_rows = true});
    CHECK_THROWS_MATCHES(read(held, layers[0]), UsageError,
                         says("rows of 'E' are held at norm 1", "make it without unit_rows"));
    owner.weight("E", 7, 3, uniform(0.1));
    Graph<T> guest({}, owner.shared_weights());
    guest.weight("E", 7, 3, uniform(0.1));
    CHECK_THROWS_MATCHES(read(guest, layers[0]), UsageError, says("shared weights"));

    WeightDrop<T> drop(m.g.parameters("up.U"), {.keep = 0.5});
    const typename WeightDrop<T>::Dropped dropped(drop);
    CHECK_THROWS_MATCHES(read(m.g, layers[0]), UsageError, says("read_torch", "'up.U'", "the weight drop"));
}
