/// @file graph/select.hpp  What a graph holds, by name: groups of parameters by patterns, single ones, sequences.
#pragma once

#include <isogloss/error.hpp>
#include <isogloss/graph/parameters.hpp>
#include <isogloss/graph/store.hpp>
#include <string_view>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace graph {

/// Whether a name matches a pattern in which '*' stands for any run of characters.
inline bool matches(std::string_view pattern, std::string_view name) {
    std::size_t star = pattern.find('*');
    if (star == std::string_view::npos) return pattern == name;
    if (!name.starts_with(pattern.substr(0, star))) return false;
    for (std::size_t place = 0; place != std::string_view::npos;) {
        name.remove_prefix(place + star);
        pattern.remove_prefix(star + 1);
        star = pattern.find('*');
        if (star == std::string_view::npos) return name.ends_with(pattern);
        place = name.find(pattern.substr(0, star));  // of what follows a '*' the first one is as good as any
    }
    return false;
}

/// Calls f(pattern) for each part of a list with commas, without the spaces around it; once for an empty list.
template <class F> void for_each_pattern(std::string_view list, F&& f) {
    for (bool more = true; more;) {
        const std::size_t comma = list.find(',');
        std::string_view one = list.substr(0, comma);
        more = comma != std::string_view::npos;
        if (more) list.remove_prefix(comma + 1);
        while (one.starts_with(' ')) one.remove_prefix(1);
        while (one.ends_with(' ')) one.remove_suffix(1);
        f(one);
    }
}

/// See Graph::parameters.
template <class T> Parameters<T> select(Store<T>& store, std::string_view pattern) {
    const auto require_some = [&](bool found, std::string_view sought) {
        if (!found)
            throw UsageError("parameters: no name matches '", sought, "' of ", names_of(store.parameters));
    };
    std::vector<bool> chosen(store.parameters.size(), false);
    bool begun = false;
    for_each_pattern(pattern, [&](std::string_view one) {
        const bool takes = !one.starts_with('!');
        if (!takes) one.remove_prefix(1);
        if (!takes && !begun) chosen.assign(chosen.size(), true);
        begun = true;
        bool found = false;
        for (std::size_t i = 0; i < chosen.size(); ++i)
            if (matches(one, store.parameters[i].name)) chosen[i] = takes, found = true;
        require_some(found, one);
    });
    std::vector<Parameter<T>*> members;
    for (std::size_t i = 0; i < chosen.size(); ++i)
        if (chosen[i]) members.push_back(&store.parameters[i]);
    require_some(!members.empty(), pattern);
    return {store, std::move(members)};
}

/// See Graph::weight.
template <class T> Weight<T> weight_named(Store<T>& store, std::string_view name) {
    for (int id = 0; id < store.parameters.count(); ++id)
        if (const auto& p = store.parameters[id]; p.name == name) return {id, p.rows, p.cols, store.serial};
    throw UsageError("parameter: none is named '", name, "' of ", names_of(store.parameters));
}

/// See Graph::sequence.
template <class T> Seq<T> sequence_named(const Store<T>& store, std::string_view name) {
    for (int id = 0; id < store.seqs.count(); ++id)
        if (const auto& s = store.seqs[id]; s.name == name) return {id, s.width, store.serial};
    throw UsageError("sequence: none is named '", name, "' of ", names_of(store.seqs));
}

}}}  // namespace isogloss::graph
