/// @file table.cpp  Reading and writing CSV, averages, the figure.
#include "table.hpp"

#include <algorithm>
#include <cmath>
#include <isogloss/file/output_file.hpp>
#include <isogloss/file/reader.hpp>
#include <string_view>

#include "../shared/csv_log.hpp"
#include "../shared/exact.hpp"
#include "../shared/gnuplot.hpp"

namespace study {

std::vector<Point> points(const Options& o) {
    std::vector<Point> all;
    for (ig::Index run = 0; run < o.runs; ++run) {
        for (const double beta : o.betas) all.push_back({"beta", beta, o.tau, run});
        for (const double tau : o.taus) all.push_back({"tau", o.beta, tau, run});
    }
    return all;
}

void write_table(const std::string& path, const std::vector<Row>& rows) {
    ig::file::write_atomically(path, [&](ig::file::OutputFile& out) {
        out.write(std::string(header) + "\n");
        for (const Row& r : rows) {
            std::string line = r.point.sweep;
            for (const double x : {r.point.beta, r.point.tau, double(r.point.run), double(r.epoch), r.loss,
                                   r.perplexity, r.distance, r.smallest, r.median, r.largest, r.turn})
                line.append(1, ',').append(files::exact(x));
            out.write(line + "," + r.study + "\n");
        }
    });
}

std::vector<Row> read_table(const std::string& path) {
    ig::file::LineReader lines(path);
    std::string_view line;
    const auto refuse = [&](const std::string& expected) {
        throw ig::DataError(ig::message(path, ":", lines.line(), ": found ", ig::in_quotes(line),
                                        ", expected ", expected, "; is this a table of subspace_distance?"));
    };
    if (!lines.next(line) || line != header) refuse("the header " + std::string(header));
    std::vector<Row> rows;
    while (lines.next(line)) {
        Row r;
        const auto fields = files::csv_fields(line);
        if (fields.size() != 13) refuse("thirteen fields");
        r.point.sweep = fields[0];
        if (r.point.sweep != "beta" && r.point.sweep != "tau") refuse("a row of the sweep beta or tau");
        double v[11];
        for (std::size_t i = 0; i < 11; ++i) {
            v[i] = files::csv_number(fields[i + 1]).value_or(std::nan(""));
            if (!std::isfinite(v[i])) refuse("a number in each field but the first and the study");
        }
        for (const std::size_t i : {2, 3})
            if (!(v[i] >= 0 && v[i] <= 1e15 && v[i] == std::floor(v[i])))
                refuse("whole numbers as run and epoch");
        r.study = fields[12];
        r.point = {r.point.sweep, v[0], v[1], static_cast<ig::Index>(v[2])};
        r.epoch = static_cast<ig::Index>(v[3]);
        r.loss = v[4];
        r.perplexity = v[5];
        r.distance = v[6];
        r.smallest = v[7];
        r.median = v[8];
        r.largest = v[9];
        r.turn = v[10];
        rows.push_back(std::move(r));
    }
    return rows;
}

std::map<double, std::map<ig::Index, Row>> last_rows(const std::vector<Row>& rows, const std::string& sweep) {
    std::map<double, std::map<ig::Index, Row>> last;
    for (const Row& r : rows) {
        if (r.point.sweep != sweep) continue;
        Row& kept = last[sweep == "beta" ? r.point.beta : r.point.tau][r.point.run];
        if (r.epoch >= kept.epoch) kept = r;
    }
    return last;
}

std::vector<Row> averages(const std::vector<Row>& rows, const std::string& sweep) {
    std::vector<Row> means;
    for (const auto& [value, runs] : last_rows(rows, sweep)) {
        Row mean = runs.begin()->second;
        mean.point.run = static_cast<ig::Index>(runs.size());  // here: the number of runs
        for (double Row::*field : {&Row::loss, &Row::perplexity, &Row::distance, &Row::smallest, &Row::median,
                                   &Row::largest, &Row::turn}) {
            double sum = 0;
            for (const auto& [run, row] : runs) sum += row.*field;
            mean.*field = sum / static_cast<double>(runs.size());
        }
        means.push_back(mean);
    }
    return means;
}

void draw(const std::string& path, const std::vector<Row>& rows) {
    plot::Figure f(path, 900, 330);
    // The data are in the script itself, so that it needs no second file.
    const auto block = [&](const std::string& name, const std::vector<Row>& of, auto&& x) {
        f << "$" << name << " << end_of_data\n";
        for (const Row& r : of) f << x(r) << ',' << r.distance << '\n';
        f << "end_of_data\n";
    };
    const auto by_beta = averages(rows, "beta"), by_tau = averages(rows, "tau");
    block("beta", by_beta, [](const Row& r) { return r.point.beta; });
    block("tau", by_tau, [](const Row& r) { return r.point.tau; });
    std::vector<std::string> curves;
    for (const auto& mean : by_beta) {
        std::vector<Row> curve;
        std::copy_if(rows.begin(), rows.end(), std::back_inserter(curve), [&](const Row& r) {
            return r.point.sweep == "beta" && r.point.beta == mean.point.beta && r.point.run == 0;
        });
        const std::string name = ig::message("curve", curves.size());
        block(name, curve, [](const Row& r) { return static_cast<double>(r.epoch); });
        curves.push_back(ig::message("$", name, " using 1:2 with lines lw 2 title '", mean.point.beta, "'"));
    }
    f << "set multiplot layout 1,3\nset yrange [0:1.05]\nset ylabel 'distance'\nset grid\n"
         "set style line 1 lw 2 pt 7 ps 0.5 lc rgb '#1f5fa8'\nunset key\n";
    if (!by_beta.empty())
        f << "set xlabel 'β  (τ = " << by_beta.front().point.tau
          << ")'\nplot $beta using 1:2 with linespoints ls 1\n";
    if (!by_tau.empty())
        f << "set xlabel 'τ  (β = " << by_tau.front().point.beta
          << ")'\nset logscale x\nplot $tau using 1:2 with linespoints ls 1\nunset logscale x\n";
    if (!curves.empty()) {
        f << "set xlabel 'epoch'\nset key title 'β' outside top center horizontal maxcols 3 font ',9'\nplot ";
        for (std::size_t i = 0; i < curves.size(); ++i) f << (i ? ", " : "") << curves[i];
        f << '\n';
    }
    f << "unset multiplot\n";
    f.draw();
}

}  // namespace study
