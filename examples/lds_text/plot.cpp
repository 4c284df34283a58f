/// @file plot.cpp  Log-likelihood over the iterations of EM, from the logs of several fits.
#include <filesystem>
#include <isogloss/file/reader.hpp>
#include <sstream>

#include "../shared/gnuplot.hpp"
#include "common.hpp"

namespace lt {

namespace {

struct Point {
    ig::Index iteration;
    double above;  // of a model without dynamics
};

/// The rows of a log of `fit`.
std::vector<Point> read_log(const std::string& path) {
    ig::file::LineReader lines(path);
    std::vector<Point> points;
    std::string_view line;
    if (!lines.next(line) || !line.starts_with("iteration,log_likelihood,above_static,"))
        throw ig::DataError(ig::message(path, ": is no log of `lds_text fit --log`"));
    while (lines.next(line)) {
        std::istringstream in{std::string(line)};
        in.imbue(std::locale::classic());
        Point p = {};
        double likelihood = 0;
        char a = 0, b = 0;
        if (!(in >> p.iteration >> a >> likelihood >> b >> p.above) || a != ',' || b != ',')
            throw ig::DataError(ig::message(path, ":", lines.line(), ": found ", ig::in_quotes(line),
                                            ", expected iteration,log_likelihood,above_static,…"));
        points.push_back(p);
    }
    if (points.empty()) throw ig::DataError(ig::message(path, ": there is no iteration in it"));
    return points;
}

}  // namespace

int plot(const PlotCommand& o) {
    if (!o.names.empty() && o.names.size() != o.logs.size())
        throw ig::DataError(ig::message("plot: found ", o.names.size(), " names for ", o.logs.size(),
                                        " logs, expected as many"));
    files::Outputs().read("--logs", o.logs).write("--svg", o.svg, ::plot::kind()).check();
    ::plot::Figure figure(o.svg, 640, 400);
    for (std::size_t i = 0; i < o.logs.size(); ++i) {
        figure << "$log" << i << " << end_of_data\n";
        for (const Point& p : read_log(o.logs[i])) figure << p.iteration << ',' << p.above << '\n';
        figure << "end_of_data\n";
    }
    figure << "set grid lc rgb '#dddddd'\nset key bottom right\nset xlabel 'iterations of EM'\n"
           << "set ylabel 'log-likelihood per token above no dynamics, nats'\nplot 0 lc rgb '#777777' dt 2 "
              "notitle";
    const char* colours[] = {"#1f5fa8", "#c0392b", "#2e8b57", "#8e5aa8"};
    for (std::size_t i = 0; i < o.logs.size(); ++i) {
        const std::string name =
            o.names.empty() ? std::filesystem::path(o.logs[i]).stem().string() : o.names[i];
        figure << ", $log" << i << " using 1:2 with linespoints lw 2 pt 7 ps 0.6 lc rgb '" << colours[i % 4]
               << "' title " << ::plot::quoted(name) << " noenhanced";
    }
    figure << '\n';
    figure.draw();
    return 0;
}

}  // namespace lt
