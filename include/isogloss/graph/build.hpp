/// @file graph/build.hpp  The part of Graph that builds: names, handles, nodes. Included by graph.hpp.
#pragma once

#include <array>
#include <isogloss/graph/graph.hpp>
#include <isogloss/graph/unit_rows.hpp>
#include <limits>
#include <tuple>

namespace isogloss {

template <class T> Graph<T>::Graph(GraphOptions options) {
    if (options.time < 1 || options.batch < 1)
        throw UsageError(message("graph: found capacities time = ", options.time, ", batch = ", options.batch,
                                 ", expected at least 1 each"));
    if (options.budget < 1)
        throw UsageError(message("graph: found budget = ", options.budget, " bytes, expected at least 1"));
    constexpr Index most = std::numeric_limits<Index>::max();
    if (options.time == most || !product_of(std::array{options.time + 1, options.batch}, sizeof(double)))
        throw UsageError(
            message("graph: found capacities time = ", options.time, ", batch = ", options.batch,
                    ", expected that one number for each position takes at most 2^63 - 1 bytes"));
    store_.capacity = {options.time, options.batch};
    store_.seed = options.seed;
    store_.budget = std::min(options.budget, most / 4);  // "no limit", and sums of it can still be counted
}

// Runs build(); if it throws, forgets everything it has added, and what it has noted in weights and tokens
// that were there before. Where memory ends, that is a UsageError.
template <class T> template <class Build>
auto Graph<T>::all_or_nothing(const char* kind, const std::string& name, Build&& build) {
    return within_memory(
        [&] { return message(kind, " '", name, "'"); }, -1,
        [&] {
            const auto sizes = [this] {
                return std::array{store_.tokens.size(), store_.parameters.size(), store_.seqs.size(),
                                  store_.units.size(),  store_.masks.size(),      store_.logits.size(),
                                  store_.losses.size(), store_.node_names.size(), store_.claimed.size(),
                                  store_.edges.size()};
            };
            const auto before = sizes();
            std::vector<bool> read;
            std::vector<std::pair<Index, Index>> uses;
            for (const auto& x : store_.tokens) read.push_back(x.read_by_node);
            for (const auto& p : store_.parameters) uses.emplace_back(p.lookups, p.uses);
            const Arena::Mark taken = store_.arena.mark();
            try {
                return build();
            } catch (...) {
                store_.arena.back_to(taken);
                store_.tokens.resize(before[0]);
                store_.parameters.resize(before[1]);
                store_.seqs.resize(before[2]);
                store_.units.resize(before[3]);
                store_.masks.resize(before[4]);
                store_.logits.resize(before[5]);
                store_.losses.resize(before[6]);
                store_.node_names.resize(before[7]);
                store_.edges.resize(before[9]);
                for (; store_.claimed.size() > before[8]; store_.claimed.pop_back())
                    store_.names.erase(store_.claimed.back());
                for (std::size_t i = 0; i < read.size(); ++i) store_.tokens[i].read_by_node = read[i];
                for (std::size_t i = 0; i < uses.size(); ++i)
                    std::tie(store_.parameters[i].lookups, store_.parameters[i].uses) = uses[i];
                throw;
            }
        });
}

template <class T> Tokens Graph<T>::tokens(const std::string& name, Index vocabulary) {
    constexpr Index most = Index{std::numeric_limits<Token>::max()} + 1;
    if (vocabulary < 1 || vocabulary > most)
        throw UsageError(message("tokens '", name, "': found vocabulary ", vocabulary,
                                 ", expected at least 1 and at most 2^31, the numbers a token can be"));
    return all_or_nothing("tokens input", name, [&] {
        store_.claim(name, "tokens input");
        graph::TokensRecord r;
        r.name = name;
        r.vocabulary = vocabulary;
        r.value =
            store_.arena.template take<Token>(store_.capacity_rows(), message("tokens input '", name, "'"));
        store_.tokens.push_back(r);
        return Tokens{static_cast<int>(store_.tokens.size()) - 1, vocabulary, store_.serial};
    });
}

template <class T> Seq<T> Graph<T>::input(const std::string& name, Index width) {
    return all_or_nothing("input", name, [&] {
        store_.claim(name, "input");
        return Seq<T>{store_.add_seq(name, width, 0, false, -1), width, store_.serial};
    });
}

template <class T> Weight<T> Graph<T>::weight(const std::string& name, Index rows, Index cols,
                                              const Init& init, WeightOptions options) {
    return all_or_nothing("weight", name, [&] {
        const Weight<T> w = graph::add_weight(store_, name, rows, cols, init);
        if (options.unit_rows) {
            auto& p = store_.at(store_.parameters, w.id);
            p.unit_rows = true;
            normalise_rows(p);
        }
        return w;
    });
}

template <class T> template <template <class> class Node, class... Inputs>
auto Graph<T>::add(const std::string& name, typename Node<T>::Options options, Inputs... inputs) {
    using N = Node<T>;
    static_assert(HasOptions<N>,
                  "isogloss: a node needs a nested type Options and a member `options` of that type");
    static_assert(
        AcceptsInputs<N, T, Inputs...>,
        "isogloss: the node's setup() does not accept these inputs; its parameters after Setup<T>& are the "
        "wiring rule, and all handles must come from a graph of the same scalar type");
    static_assert(HasForward<N, T>, "isogloss: a node needs `void forward(Forward<T>&)`");
    static_assert(HasBackward<N, T>,
                  "isogloss: a node needs `template <class Quantity> void backward(Backward<T, Quantity>&)`");

    if constexpr (HasOptions<N> && AcceptsInputs<N, T, Inputs...> && HasForward<N, T> && HasBackward<N, T>) {
        return all_or_nothing("node", name, [&] {
            store_.claim(name, "node");
            const int id = static_cast<int>(nodes_.size());
            store_.node_names.push_back(name);
            auto owner = std::make_unique<graph::NodeOf<T, N>>();
            owner->node.options = std::move(options);

            graph::NodeRecord<T> record;
            (note(record, inputs), ...);
            record.first_seq = static_cast<int>(store_.seqs.size());
            record.first_units = static_cast<int>(store_.units.size());
            record.first_mask = static_cast<int>(store_.masks.size());
            Setup<T> setup(store_, id);
            auto output = owner->node.setup(setup, inputs...);
            record.last_seq = static_cast<int>(store_.seqs.size());
            record.last_units = static_cast<int>(store_.units.size());
            record.last_mask = static_cast<int>(store_.masks.size());
            record.node = std::move(owner);
            nodes_.push_back(std::move(record));
            return output;
        });
    }
}

template <class T> template <class H> void Graph<T>::check_owner(const H& h, const char* what) const {
    if (h.id < 0)
        throw UsageError(
            message(what, " handle: it is empty; use the one returned when the ", what, " was made"));
    if (h.graph != store_.serial)
        throw UsageError(message(
            what, " handle: it belongs to another graph; handles serve only the graph that gave them"));
}

template <class T> Parameters<T> Graph<T>::parameters(std::string_view pattern) {
    std::vector<Parameter<T>*> members;
    std::string known;
    for (auto& p : store_.parameters) {
        if (matches(pattern, p.name)) members.push_back(&p);
        if (!known.empty()) known += ", ";
        known += p.name;
    }
    if (members.empty())
        throw UsageError(message("parameters: no name matches '", pattern,
                                 "'. There are: ", known.empty() ? "none" : known));
    return {store_, std::move(members)};
}

template <class T> Parameter<T>& Graph<T>::parameter(std::string_view name) {
    for (auto& p : store_.parameters)
        if (p.name == name) return p;
    parameters(name);  // throws with the list of names, unless the name holds a '*'
    throw UsageError(message("parameter: '", name, "' is a pattern, expected one exact name"));
}

template <class T> Weight<T> Graph<T>::weight(std::string_view name) {
    const Parameter<T>& wanted = parameter(name);
    for (std::size_t i = 0;; ++i)
        if (&store_.parameters[i] == &wanted)
            return {static_cast<int>(i), wanted.rows, wanted.cols, store_.serial};
}

}  // namespace isogloss
