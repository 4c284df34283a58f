/// @file study.hpp  The options under which a row of a table was measured, in a field of that row.
#pragma once

#include <algorithm>
#include <isogloss/error.hpp>
#include <isogloss/file/checksum.hpp>
#include <isogloss/file/input_file.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "exact.hpp"

namespace files {

namespace ig = isogloss;

/// Options and their values, so that rows of different studies are not mixed. As a field: "epochs=4 rate=0.5",
/// without commas and quotes.
class Study {
public:
    /// The study of a field.
    static Study read(std::string_view field) {
        Study s;
        for (std::size_t begin = 0; begin < field.size();) {
            const std::size_t end = std::min(field.find(' ', begin), field.size());
            const std::string_view part = field.substr(begin, end - begin);
            const std::size_t is = std::min(part.find('='), part.size());
            s.values_.emplace_back(part.substr(0, is), part.substr(std::min(is + 1, part.size())));
            begin = end + 1;
        }
        return s;
    }

    /// Adds an option, named as on the command line without its dashes.
    template <class V> Study& add(std::string name, const V& value) {
        if constexpr (std::is_arithmetic_v<V> && !std::is_same_v<V, bool>) {
            values_.emplace_back(std::move(name), exact(value));
        } else {
            values_.emplace_back(std::move(name), ig::message(value));
        }
        return *this;
    }
    /// Adds a text by the checksum of its file.
    Study& add_text(std::string name, const std::string& path) {
        return add(std::move(name),
                   ig::file::hex16(ig::file::hash_bytes(ig::file::InputFile(path).read_all())));
    }

    std::string field() const {
        std::string out;
        for (const auto& [name, value] : values_) out += (out.empty() ? "" : " ") + name + "=" + value;
        return out;
    }

    /// What `other` has differently of the options that both have: "--epochs is 4, not 8"; empty if nothing.
    std::string differences(const Study& other) const {
        std::string out;
        for (const auto& [name, value] : values_)
            for (const auto& [same, found] : other.values_)
                if (name == same && value != found)
                    out += (out.empty() ? "--" : ", --") + name + " is " + found + ", not " + value;
        return out;
    }

private:
    std::vector<std::pair<std::string, std::string>> values_;
};

/// Throws DataError if a row of the table --csv is of another study: if `differences(row, its study)`, what it has
/// differently, is not empty.
template <class Rows, class Differences>
void require_same_study(const std::string& csv, const Rows& rows, Differences&& differences) {
    for (const auto& row : rows) {
        const auto study = Study::read(row.study);
        if (const std::string found = differences(row, study); !found.empty())
            throw ig::DataError(ig::message("--csv '", csv, "' has rows of another study: ", found,
                                            ". Give --csv another name, or the options of the table"));
    }
}

}  // namespace files
