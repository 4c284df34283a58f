/// @file graph/builder.hpp  Adds inputs, weights and nodes to a graph: each completely or not at all.
#pragma once

#include <array>
#include <isogloss/graph/node.hpp>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace isogloss::inline ISOGLOSS_CONFIGURATION::graph {

/// The half of Graph that builds it; Graph documents each function.
template <class T> class Builder {
public:
    Builder(Store<T>& store, Array<NodeRecord<T>>& nodes) : store_(store), nodes_(nodes) {}

    Tokens tokens(const std::string& name, Index vocabulary) {
        constexpr Index most = Index{std::numeric_limits<Token>::max()} + 1;
        if (vocabulary < 1 || vocabulary > most)
            throw UsageError("tokens '", name, "': found vocabulary ", vocabulary,
                             ", expected at least 1 and at most 2^31, the numbers a token can be");
        return all_or_nothing("tokens input", name, [&] {
            store_.claim(name, "tokens input");
            TokensRecord r;
            r.name = name;
            r.vocabulary = vocabulary;
            r.value = store_.arena.template take<Token>(store_.capacity_rows(),
                                                        message("tokens input '", name, "'"));
            store_.tokens.push_back(r);
            return Tokens{store_.tokens.count() - 1, vocabulary, store_.serial};
        });
    }

    Seq<T> input(const std::string& name, Index width) {
        return all_or_nothing("input", name, [&] {
            store_.claim(name, "input");
            return Seq<T>{store_.add_seq(name, width, 0, false, -1), width, store_.serial};
        });
    }

    Weight<T> weight(const std::string& name, Index rows, Index cols, const Init& init, bool unit_rows,
                     bool trained) {
        return all_or_nothing("weight", name, [&] {
            const Weight<T> w = add_weight(store_, name, rows, cols, init, trained);
            if (unit_rows) {
                auto& p = store_[w];
                p.unit_rows = true;
                if (!store_.shared) normalise_rows(p);
                else if (!store_.shared->at(name, rows, cols).unit_rows)
                    throw UsageError(
                        "weight '", name,
                        "': found unit_rows = true, expected false as in the graph that shares it");
            }
            return w;
        });
    }

    template <template <class> class Node, class... Inputs>
    auto add(const std::string& name, typename Node<T>::Options options, Inputs... inputs) {
        using N = Node<T>;
        static_assert(HasOptions<N>,
                      "isogloss: a node needs a nested type Options and a member `options` of that type");
        static_assert(AcceptsInputs<N, T, Inputs...>,
                      "isogloss: the node's setup() does not accept these inputs; its parameters after "
                      "Setup<T>& are the "
                      "wiring rule, and all handles must come from a graph of the same scalar type");
        static_assert(HasForward<N, T>, "isogloss: a node needs `void forward(Forward<T>&)`");
        static_assert(
            HasBackward<N, T>,
            "isogloss: a node needs `template <class Quantity> void backward(Backward<T, Quantity>&)`");

        if constexpr (HasOptions<N> && AcceptsInputs<N, T, Inputs...> && HasForward<N, T> &&
                      HasBackward<N, T>) {
            return all_or_nothing("node", name, [&] {
                store_.claim(name, "node");
                const int id = static_cast<int>(nodes_.size());
                store_.node_names.push_back(name);
                auto owner = std::make_unique<NodeOf<T, N>>();
                owner->node.options = std::move(options);

                NodeRecord<T> record;
                (note(record, inputs), ...);
                const std::size_t bytes = store_.arena.size();
                record.first_seq = store_.seqs.count();
                record.first_units = store_.units.count();
                record.first_mask = store_.masks.count();
                record.first_parameter = store_.parameters.count();
                Setup<T> setup(store_, id);
                auto output = owner->node.setup(setup, inputs...);
                record.last_seq = store_.seqs.count();
                record.last_units = store_.units.count();
                record.last_mask = store_.masks.count();
                record.last_parameter = store_.parameters.count();
                record.bytes = store_.arena.size() - bytes;
                record.node = std::move(owner);
                nodes_.push_back(std::move(record));
                return output;
            });
        }
    }

private:
    // Runs build(); if it throws, undoes everything it has added, and what it has recorded in existing weights
    // and tokens. Running out of memory becomes a UsageError.
    template <class Build> auto all_or_nothing(const char* kind, const std::string& name, Build&& build) {
        return within_memory(
            [&] { return message(kind, " '", name, "'"); }, -1,
            [&] {
                auto& s = store_;
                const auto records = std::tie(s.tokens, s.parameters, s.seqs, s.units, s.published, s.masks,
                                              s.logits, s.losses, s.node_names);
                const auto before =
                    std::apply([](const auto&... r) { return std::array{r.size()...}; }, records);
                const std::size_t claimed = s.claimed.size();
                std::vector<bool> read;
                std::vector<std::tuple<Index, Index, int, int>> uses;
                for (const auto& x : s.tokens) read.push_back(x.read_by_node);
                for (const auto& p : s.parameters)
                    uses.emplace_back(p.lookups, p.uses, p.first_node, p.first_product);
                const Arena::Mark taken = s.arena.mark();
                try {
                    return build();
                } catch (...) {
                    s.arena.back_to(taken);
                    std::size_t place = 0;
                    std::apply([&](auto&... r) { (r.resize(before[place++]), ...); }, records);
                    for (; s.claimed.size() > claimed; s.claimed.pop_back()) s.names.erase(s.claimed.back());
                    for (std::size_t i = 0; i < read.size(); ++i) s.tokens[i].read_by_node = read[i];
                    for (std::size_t i = 0; i < uses.size(); ++i)
                        std::tie(s.parameters[i].lookups, s.parameters[i].uses, s.parameters[i].first_node,
                                 s.parameters[i].first_product) = uses[i];
                    throw;
                }
            });
    }

    // Inputs of a node, by kind of handle.
    void note(NodeRecord<T>& n, Tokens x) {
        store_.require_own(x, "tokens");
        n.input_tokens.push_back(x.id);
    }
    void note(NodeRecord<T>& n, Seq<T> a) {
        store_.require_own(a, "sequence");
        const auto& s = store_[a];
        if (s.closed)
            throw UsageError(
                "node '", store_.node_names.back(), "': its input '", s.name, "' is internal to '",
                store_.node_names[s.node],
                "', expected a sequence whose adjoint other nodes may add to: backward overwrites "
                "this one's. Its values can be read by value(sequence)");
        n.input_seqs.push_back(a.id);
        if (s.node >= 0) n.inputs.push_back(s.node);
    }
    void note(NodeRecord<T>& n, Units<T> u) { note(n, u.z); }
    void note(NodeRecord<T>& n, Weight<T> w) {
        store_.require_own(w, "weight");
        n.input_weights.push_back(w.id);
    }
    void note(NodeRecord<T>& n, Logits<T> o) {
        store_.require_own(o, "logits");
        n.inputs.push_back(store_[o].node);
    }
    void note(NodeRecord<T>& n, Loss<T> l) {
        store_.require_own(l, "loss");
        n.inputs.push_back(store_[l].node);
    }

    Store<T>& store_;
    Array<NodeRecord<T>>& nodes_;
};

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION::graph
