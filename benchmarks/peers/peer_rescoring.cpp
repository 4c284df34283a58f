// isogloss's side of rescoring.py: score_hypotheses on an evaluation graph, on one thread.
//
//     peer_rescoring LAYERS UNITS VOCABULARY MODEL LISTS
//
// Writes a tied LSTM language model with random weights to MODEL, as language_model would, and reads n-best
// lists from LISTS: one text per line, tokens separated by spaces, an empty line after each list. Then, for
// each line on standard input, which names the storage of the weights (plain, or packed as full, bf16 or
// int8), scores all lists and prints the processor time in seconds, the positions read, and the
// log-probabilities of all texts.
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <isogloss/evaluation.hpp>
#include <isogloss/io.hpp>
#include <isogloss/isogloss.hpp>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace ig = isogloss;
using ig::Index;
using Texts = std::vector<std::vector<ig::Token>>;

int main(int argc, char** argv) {
    if (argc != 6) {
        std::cerr
            << "usage: peer_rescoring LAYERS UNITS VOCABULARY MODEL LISTS, then lines on standard input\n";
        return 2;
    }
    const Index layers = std::atoll(argv[1]), units = std::atoll(argv[2]), V = std::atoll(argv[3]);
    std::vector<Texts> lists(1);
    std::size_t columns = 1;
    std::ifstream file(argv[5]);
    for (std::string line; std::getline(file, line);) {
        if (line.empty()) {
            lists.emplace_back();
            continue;
        }
        std::istringstream words(line);
        auto& text = lists.back().emplace_back();
        for (ig::Token w; words >> w;) text.push_back(w);
        columns = std::max(columns, lists.back().size());
    }

    ig::threads(1);
    const auto build = [&](ig::Graph<float>& g) {
        const auto x = g.tokens("x", V);
        const auto E = g.weight("E", V, units, ig::uniform(0.1));
        auto h = g.add<ig::Embedding>("embed", {}, x, E);
        for (Index l = 1; l <= layers; ++l)
            h = g.add<ig::Lstm>(ig::message("lstm", l), {.units = units, .init = ig::uniform(0.05)}, h);
        return std::pair(x, g.add<ig::TiedSoftmax>("softmax", {}, h, E));
    };
    const ig::GraphOptions sizes{.time = 20, .batch = static_cast<Index>(columns), .gradients = false};
    ig::Graph<float> g(sizes);
    const auto [x, o] = build(g);
    const std::map<std::string, ig::Precision> precisions = {
        {"full", ig::Precision::full}, {"bf16", ig::Precision::bf16}, {"int8", ig::Precision::int8}};
    using Handles = std::pair<ig::Tokens, ig::Logits<float>>;
    std::map<std::string, std::pair<std::unique_ptr<ig::Graph<float>>, Handles>> packed;

    std::string vocabulary = ig::message(
        "isogloss-vocabulary\t1\nlevel\tword\neos_per_line\ttrue\nunk\t<unk>\neos\t<eos>\ntypes\t", V, "\n");
    for (Index v = 0; v < V; ++v) vocabulary += ig::message("w", v, "\t1\n");
    const nlohmann::json options = {{"cell", "lstm"},      {"layers", layers},   {"units", units},
                                    {"last-units", units}, {"embedding", units}, {"head", "tied"},
                                    {"head-bias", false},  {"depth", 1}};
    ig::io::Checkpoint()
        .model(g)
        .text("vocabulary", vocabulary)
        .save(argv[4], {{"language_model", options.dump()}});
    std::cout << "ready" << std::endl;

    for (std::string line; std::getline(std::cin, line);) {
        ig::Graph<float>* at = &g;
        Handles handles(x, o);
        if (line != "plain") {
            auto& [other, own] = packed[line];
            if (!other) {
                other = std::make_unique<ig::Graph<float>>(sizes, g.packed_weights(precisions.at(line)));
                own = build(*other);
            }
            at = other.get(), handles = own;
        }
        Index positions = 0;
        std::ostringstream found;
        found.precision(9);
        const auto begin = std::clock();
        for (const Texts& list : lists) {
            const auto scores = ig::score_hypotheses(*at, handles.first, handles.second,
                                                     std::span<const std::vector<ig::Token>>(list));
            positions += scores.positions;
            for (const double p : scores.log_probability) found << ' ' << p;
        }
        std::cout << static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC << ' ' << positions
                  << found.str() << std::endl;
    }
}
