/// @file compare_report.cpp  The result of a comparison, on the screen and as a table.
#include <cmath>
#include <iostream>
#include <isogloss/file/output_file.hpp>

#include "../shared/csv_log.hpp"
#include "comparison.hpp"
#include "print.hpp"

namespace lm {

namespace {

/// A number of any size to three significant digits.
std::string rounded(double x) {
    char digits[32];
    return {digits, std::to_chars(digits, digits + sizeof digits, x, std::chars_format::general, 3).ptr};
}

}  // namespace

void print(const CompareOptions& o, const Comparison& c) {
    const auto line = [](const std::string& name, const Mean& m) {
        std::cout << std::left << std::setw(48) << name << std::right;
        if (m.count == 0) {
            std::cout << "  there are no such positions\n";
            return;
        }
        const double ratio = m.of(1) / m.of(0);
        std::cout << std::setw(9) << fixed(m.of(0), 4) << std::setw(9) << fixed(m.of(1), 4) << std::setw(9)
                  << (ratio > 1e-3 && ratio < 1e3 ? fixed(ratio, 3) : rounded(ratio)) << std::setw(9)
                  << fixed(100 * double(m.second_higher) / double(m.count), 1) << " %" << std::setw(10)
                  << grouped(m.count) << '\n';
    };
    std::cout << "first       " << o.model << "  perplexity " << fixed(std::exp(-c.log_p.of(0)), 2)
              << "\nsecond      " << o.against << "  perplexity " << fixed(std::exp(-c.log_p.of(1)), 2)
              << "\n\n"
              << std::left << std::setw(48) << "mean probability of" << std::right << std::setw(9) << "first"
              << std::setw(9) << "second" << std::setw(9) << "ratio" << std::setw(11) << "2nd more"
              << std::setw(10) << "positions" << '\n';
    const std::string nearest = ig::message("its ", *o.neighbours, " nearest words in the table of the ");
    line("the target", c.target);
    line(nearest + "first", c.neighbours[0]);
    line(nearest + "second", c.neighbours[1]);
    line("<unk>, where it is not the target", c.unknown);
    line(ig::message("the ", *o.frequent, " most frequent, where none is the target"), c.frequent);
    for (const auto& [token, mean] : c.words)
        line("'" + c.word(token) + "', where it is not the target", mean);
    for (const bool gains : {true, false}) {
        const auto& list = gains ? c.gains : c.losses;
        if (list.empty()) continue;
        std::cout << "\nwhere the second model gives the target most " << (gains ? "more" : "less")
                  << " probability, as a ratio\n";
        for (const Shown& s : list) {
            std::cout << "\n  ";
            for (ig::Index i = std::max<ig::Index>(0, s.at - o.context); i < s.at; ++i)
                std::cout << c.word_at(i) << ' ';
            std::cout << "-> " << c.word_at(s.at) << "  (x " << fixed(std::exp(s.gain), 2) << ")\n";
            for (std::size_t k = 0; k < 2; ++k) {
                std::cout << (k == 0 ? "    first  " : "    second ");
                for (const auto& [token, p] : s.likeliest[k])
                    std::cout << ' ' << c.word(token) << ' ' << fixed(p, 2);
                std::cout << '\n';
            }
        }
    }
}

void write(const std::string& path, const Comparison& c) {
    ig::file::write_atomically(path, [&](ig::file::OutputFile& out) {
        out.write(ig::message(comparison_header, '\n'));
        for (const auto& row : c.positions) {
            std::string line = ig::message(row.at, ',', files::csv_text(c.word_at(row.at)));
            for (const double v : row.values) line.append(1, ',').append(exact(v));
            out.write(line.append(1, '\n'));
        }
    });
}

}  // namespace lm
