/// @file count_runs.hpp  Files of counts from lists of pairs, and back, for the tests of their readers.
#pragma once

#include <isogloss/lds/count_cursor.hpp>
#include <isogloss/lds/count_run.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace count_runs {

using namespace isogloss;
using namespace isogloss::lds;

/// (row, column) → count.
using Pairs = std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>;

/// Writes sections 0 … r of a file about tokens first … last-1 of a text.
inline CountRunHeader write(const std::string& path, CountRunHeader header,
                            const std::vector<Pairs>& sections) {
    header.lags = std::ssize(sections) - 1;
    CountRunWriter out(path, header);
    for (const Pairs& pairs : sections) {
        out.section();
        for (const auto& [at, count] : pairs) out.add(at.first, at.second, count);
    }
    out.commit();
    return header;
}

/// Reads section k.
inline Pairs read(const CountRun& run, Index k, Index buffer = 65536) {
    Pairs pairs;
    for (CountRunCursor at(run, k, buffer); at.next();) pairs[{at.row(), at.column()}] = at.count();
    return pairs;
}

}  // namespace count_runs
