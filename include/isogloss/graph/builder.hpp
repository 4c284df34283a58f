/// @file graph/builder.hpp  Adds inputs, weights and nodes to a graph: each completely or not at all.
#pragma once

#include <array>
#include <isogloss/graph/node.hpp>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace graph {

/// What is added to a store while one lives: its end takes it back, and what was recorded meanwhile in weights and
/// tokens that existed before, unless keep() was called.
template <class T> class Addition {
public:
    explicit Addition(Store<T>& store)
        : store_(store), before_(sizes()), claimed_(store.claimed.size()), taken_(store.arena.mark()) {
        for (const auto& x : store.tokens) read_.push_back(x.read_by_node);
        for (const auto& p : store.parameters) uses_.emplace_back(p.lookups, p.users.size());
    }
    ~Addition() {
        if (kept_) return;
        auto& s = store_;
        s.arena.back_to(taken_);
        std::size_t place = 0;
        std::apply([&](auto&... r) { (r.resize(before_[place++]), ...); }, records());
        for (; s.claimed.size() > claimed_; s.claimed.pop_back()) s.names.erase(s.claimed.back());
        for (std::size_t i = 0; i < read_.size(); ++i) s.tokens[i].read_by_node = read_[i];
        for (std::size_t i = 0; i < uses_.size(); ++i) {
            auto& p = s.parameters[i];
            p.lookups = uses_[i].first;
            p.users.resize(uses_[i].second);
        }
    }
    Addition(const Addition&) = delete;
    Addition& operator=(const Addition&) = delete;

    void keep() { kept_ = true; }

private:
    auto records() const {
        auto& s = store_;
        return std::tie(s.tokens, s.parameters, s.seqs, s.units, s.published, s.masks, s.logits, s.losses,
                        s.node_names);
    }
    std::array<std::size_t, 9> sizes() const {
        return std::apply([](const auto&... r) { return std::array{r.size()...}; }, records());
    }

    Store<T>& store_;
    std::array<std::size_t, 9> before_;
    std::size_t claimed_;
    Arena::Mark taken_;
    std::vector<bool> read_;
    std::vector<std::pair<Index, std::size_t>> uses_;  // lookups and users of each parameter
    bool kept_ = false;
};

/// The half of Graph that builds it; Graph documents each function.
template <class T> class Builder {
public:
    Builder(Store<T>& store, Array<NodeRecord<T>>& nodes) : store_(store), nodes_(nodes) {}

    Tokens tokens(const std::string& name, Index vocabulary) {
        constexpr Index most = Index{std::numeric_limits<Token>::max()} + 1;
        return all_or_nothing("tokens input", name, [&] {
            require(message("tokens '", name, "'"), "vocabulary", vocabulary, 1, most);
            store_.claim(name, "tokens input");
            Token* const value = store_.arena.template take<Token>(store_.capacity_rows(),
                                                                   message("tokens input '", name, "'"));
            store_.tokens.push_back({.name = name, .vocabulary = vocabulary, .value = value});
            return Tokens{store_.tokens.count() - 1, vocabulary, store_.serial};
        });
    }

    Seq<T> input(const std::string& name, Index width) {
        return all_or_nothing("input", name, [&] {
            store_.claim(name, "input");
            return Seq<T>{store_.add_seq(name, width, false, -1), width, store_.serial};
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
                    throw UsageError("weight '", name, "': the shared weight has no unit_rows");
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
        static_assert(
            !AcceptsInputs<N, T, Inputs...> || ReturnsOutput<N, T, Inputs...>,
            "isogloss: the node's setup() returns void; expected the handle of what the node makes, a "
            "sequence, logits or a loss");
        static_assert(HasForward<N, T>, "isogloss: a node needs `void forward(Forward<T>&)`");
        static_assert(
            HasBackward<N, T>,
            "isogloss: a node needs `template <class Quantity> void backward(Backward<T, Quantity>&)`");

        if constexpr (HasOptions<N> && ReturnsOutput<N, T, Inputs...> && HasForward<N, T> &&
                      HasBackward<N, T>) {
            return all_or_nothing("node", name, [&] {
                store_.claim(name, "node");
                store_.node_names.push_back(name);
                const int id = static_cast<int>(nodes_.size());
                store_.seqs.begin_node(id), store_.units.begin_node(id);
                store_.masks.begin_node(id), store_.losses.begin_node(id);
                NodeRecord<T> record{.bytes = store_.arena.size()};
                int place = 0;
                (note(record, inputs, message("node '", name, "', input ", ++place)), ...);
                auto owner = std::make_unique<NodeOf<T, N>>();
                owner->node.options = std::move(options);
                Setup<T> setup(store_, id);
                auto output = owner->node.setup(setup, inputs...);
                if constexpr (requires { setup.open(output); }) setup.open(output);
                record.node = std::move(owner);
                record.bytes = store_.arena.size() - record.bytes;
                nodes_.push_back(std::move(record));
                return output;
            });
        }
    }

private:
    // Runs build(); if it throws, undoes everything it has added. Running out of memory becomes a UsageError.
    template <class Build> auto all_or_nothing(const char* kind, const std::string& name, Build&& build) {
        return within_memory([&] { return message(kind, " '", name, "'"); }, -1,
                             [&] {
                                 Addition<T> addition(store_);
                                 auto built = build();
                                 addition.keep();
                                 return built;
                             });
    }

    // Records an input of a node; `who` begins what is refused.
    template <class H> void note(NodeRecord<T>& n, const H& input, const std::string& who) {
        store_.require_own(input, who);
        if constexpr (std::is_same_v<H, Tokens>) {
            n.input_tokens.push_back(input.id);
        } else if constexpr (std::is_same_v<H, Weight<T>>) {
            n.input_weights.push_back(input.id);
        } else {
            const auto& record = store_[input];
            if constexpr (std::is_same_v<H, Seq<T>>) {
                if (record.internal)
                    throw UsageError(who, ": '", record.name, "' is internal to '",
                                     store_.node_names[record.node],
                                     "', which has to open() it in its setup");
                n.input_seqs.push_back(input.id);
            }
            if (record.node >= 0) n.inputs.push_back(record.node);
        }
    }
    void note(NodeRecord<T>& n, Units<T> units, const std::string& who) { note(n, units.z, who); }

    Store<T>& store_;
    Array<NodeRecord<T>>& nodes_;
};

}}}  // namespace isogloss::graph
