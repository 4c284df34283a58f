/// @file graph/describe.hpp  A graph in words.
#pragma once

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <isogloss/graph/graph.hpp>
#include <memory>
#include <string>
#include <typeinfo>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

namespace graph {

/// The name of the template of a node, such as "Lstm"; "node" if the compiler keeps no type names.
template <class T> std::string kind_of([[maybe_unused]] const NodeRecord<T>& n) {
#ifdef __cpp_rtti
    const AnyNode<T>& node = *n.node;
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> demangled(
        abi::__cxa_demangle(typeid(node).name(), nullptr, nullptr, &status), [](void* p) { std::free(p); });
    if (demangled) {
        std::string kind = demangled.get();  // …::NodeOf<float, …::Lstm<float> >
        kind.erase(0, kind.find("NodeOf<"));
        kind.erase(0, kind.find(", ") + 2);
        kind.resize(std::min(kind.find('<'), kind.size()));
        return kind.substr(kind.rfind(':') + 1);  // npos + 1 is 0
    }
#endif
    return "node";
}

/// The names of what a node reads: inputs, weights, nodes.
template <class T> std::vector<std::string> read_by(const Store<T>& store, const NodeRecord<T>& n) {
    std::vector<std::string> names;
    for (const int i : n.input_tokens) names.push_back(store.tokens[i].name);
    for (const int i : n.input_seqs)
        if (store.seqs[i].node < 0) names.push_back(store.seqs[i].name);
    for (const int i : n.inputs) names.push_back(store.node_names[i]);
    for (const int i : n.input_weights) names.push_back(store.parameters[i].name);
    return names;
}

/// What a node computes that others may read, with sizes.
template <class T> std::string made_by(const Store<T>& store, int id) {
    std::string made;
    const auto add = [&](const auto&... parts) { made += (made.empty() ? "" : ", ") + message(parts...); };
    store.seqs.of_node(id, [&](const auto& s) {
        add(s.name.substr(store.node_names[id].size() + 1), " ", s.width, s.carried ? " carried" : "");
    });
    for (const auto& o : store.logits)
        if (o.node == id) add("logits ", o.vocabulary);
    for (const auto& l : store.losses)
        if (l.node == id) add("loss");
    return made;
}

}  // namespace graph

/// The contents of a graph, one line for each input, weight and node, each kind in order of creation:
///
///     graph: T = 5, B = 2, 634 parameters, … bytes
///     tokens x: below 10
///     weight E: [10, 8], 80 parameters
///     weight lstm.W: [8, 32], 256 parameters
///     node embed: Embedding of x, E; y 8; … bytes
///     node lstm: Lstm of embed; h 8 carried, c 8 carried, tanh_c 8, z 32; … bytes
///
/// The kind of a node is followed by what it reads, its sequences [T, B, width], and the bytes
/// of Graph::memory() that it takes: parameters with their gradients, sequences with their adjoints, memory of
/// its own.
template <class T> std::string describe(const Graph<T>& g) {
    const auto& store = graph::Inspect::store(g);
    const auto& nodes = graph::Inspect::nodes(g);
    Index all = 0;
    for (const auto& p : store.parameters) all += p.size();
    std::string text = message("graph: T = ", g.capacity().time, ", B = ", g.capacity().batch, ", ", all,
                               " parameters", store.shared ? " of another graph" : "", ", ", g.memory(),
                               " bytes", g.options().gradients ? "" : ", for evaluation alone", "\n");
    for (const auto& x : store.tokens) text += message("tokens ", x.name, ": below ", x.vocabulary, "\n");
    for (const auto& s : store.seqs)
        if (s.node < 0) text += message("input ", s.name, ": width ", s.width, "\n");
    for (const auto& p : store.parameters)
        text += message("weight ", p.name, ": [", p.rows, ", ", p.cols, "], ", p.size(), " parameters",
                        p.trained ? "" : ", not trained", "\n");
    for (int id = 0; id < static_cast<int>(nodes.size()); ++id) {
        const auto& n = nodes[id];
        const std::string& name = store.node_names[id];
        std::string inputs;
        for (const auto& read : graph::read_by(store, n)) inputs += (inputs.empty() ? " of " : ", ") + read;
        const std::string made = graph::made_by(store, id);
        text += message("node ", name, ": ", graph::kind_of(n), inputs, made.empty() ? "" : "; ", made, "; ",
                        n.bytes, " bytes\n");
    }
    return text;
}

}}  // namespace isogloss
