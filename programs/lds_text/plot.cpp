/// @file plot.cpp  Curves from logs of fits, or of networks; the spectrum and the singular values of systems.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <isogloss/file/reader.hpp>
#include <isogloss/lds.hpp>
#include <isogloss/lds/files.hpp>
#include <optional>
#include <string>
#include <vector>

#include "../shared/csv_log.hpp"
#include "../shared/gnuplot.hpp"
#include "common.hpp"

namespace lt {

namespace {

constexpr const char* colours[] = {"#1f5fa8", "#c0392b", "#2e8b57", "#8e5aa8"};

/// A row of a log: log-likelihood above no dynamics, or perplexities of validation and training.
struct Point {
    ig::Index at = 0;  // iteration, epoch
    double value = 0;
    std::optional<double> train;
};

/// A log of `fit` or of `rnn`.
struct Log {
    bool of_network = false;
    std::vector<Point> points;
    std::string words;  // of a network: the number of its words, and their checksum

    explicit Log(const std::string& path) {
        ig::file::LineReader lines(path);
        std::string_view line;
        const bool any = lines.next(line);
        of_network = any && line == rnn_header;
        if (!any || !(of_network || line.starts_with("iteration,log_likelihood,above_static,")))
            throw ig::DataError(
                ig::message(path, ": this is not a log of `lds_text fit --log` or `rnn --log`"));
        while (lines.next(line)) {
            const auto fields = files::csv_fields(line);
            const std::size_t column = of_network ? 3 : 2, least = of_network ? 8 : 3;
            const auto at = files::csv_number(fields[0]),
                       value = fields.size() >= least ? files::csv_number(fields[column]) : std::nullopt;
            const bool counts = at && *at >= 0 && *at <= 1e15 && *at == std::floor(*at);
            if (!counts || !value || !std::isfinite(*value))
                throw ig::DataError(
                    ig::message(path, ":", lines.line(), ": found ", ig::in_quotes(line), ", expected ",
                                of_network ? rnn_header : "iteration,log_likelihood,above_static,…"));
            if (!points.empty() && *at <= static_cast<double>(points.back().at))
                throw ig::DataError(ig::message(
                    path, ":", lines.line(), ": iteration ", *at, " comes after ", points.back().at,
                    ": the log has several candidates, of `fit --select`; draw the log of a fit of one"));
            const std::string over =
                of_network ? ig::message(fields[6], " words, checksum ", fields[7]) : std::string();
            if (points.empty()) words = over;
            else if (over != words)
                throw ig::DataError(ig::message(path, ":", lines.line(), ": found perplexities over ", over,
                                                ", expected the ", words, ", of the rows before"));
            points.push_back({static_cast<ig::Index>(*at), *value,
                              of_network ? files::csv_number(fields[2]) : std::nullopt});
        }
        if (points.empty())
            throw ig::DataError(
                ig::message(path, ": there is no ", of_network ? "epoch" : "iteration", " in it"));
    }
};

std::string plain_name(const PlotCommand& o, const std::vector<std::string>& paths, std::size_t i) {
    return o.names.empty() ? std::filesystem::path(paths[i]).stem().string() : o.names[i];
}
std::string name(const PlotCommand& o, const std::vector<std::string>& paths, std::size_t i) {
    return ::plot::quoted(plain_name(o, paths, i)) + " noenhanced";
}

/// Says where each network was best, and when the first came to the best of each of the others.
void compare_networks(const PlotCommand& o, const std::vector<Log>& logs) {
    std::vector<Point> best;
    for (std::size_t i = 0; i < logs.size(); ++i) {
        best.push_back(*std::ranges::min_element(logs[i].points, {}, &Point::value));
        say("%s: best validation %.2f in epoch %td\n", plain_name(o, o.logs, i).c_str(), best[i].value,
            best[i].at);
    }
    const std::string first = plain_name(o, o.logs, 0);
    for (std::size_t i = 1; i < logs.size(); ++i) {
        const std::string other = plain_name(o, o.logs, i);
        const auto there =
            std::ranges::find_if(logs[0].points, [&](const Point& p) { return p.value <= best[i].value; });
        if (there == logs[0].points.end())
            say("%s does not reach the %.2f of %s\n", first.c_str(), best[i].value, other.c_str());
        else if (best[i].at == 0) say("%s was best before it was trained\n", other.c_str());
        else
            say("%s is at %.2f or below in epoch %td, %s first in epoch %td: %.0f %% of the epochs saved\n",
                first.c_str(), best[i].value, there->at, other.c_str(), best[i].at,
                100 * (1 - static_cast<double>(there->at) / static_cast<double>(best[i].at)));
    }
}

/// Log-likelihoods over the iterations of EM, or perplexities over the epochs of networks, lines for validation and
/// dashes for training.
void draw_logs(const PlotCommand& o) {
    std::vector<Log> logs;
    for (const std::string& path : o.logs) {
        logs.emplace_back(path);
        if (logs.back().of_network != logs.front().of_network)
            throw ig::DataError(ig::message("plot: '", path, "' and '", o.logs.front(),
                                            "' are logs of different kinds; draw them one by one"));
        if (logs.back().words != logs.front().words)
            throw ig::DataError(ig::message("plot: the perplexities of '", path, "' are over ",
                                            logs.back().words, ", those of '", o.logs.front(), "' over ",
                                            logs.front().words,
                                            ", and cannot be compared; train both networks over the same "
                                            "words (`rnn --vocabulary-from`), "
                                            "or draw the logs one by one"));
    }
    const bool networks = logs.front().of_network;
    ::plot::Figure figure(o.svg, 640, 400);
    for (std::size_t i = 0; i < logs.size(); ++i) {
        figure << "$log" << i << " << end_of_data\n";
        for (const Point& p : logs[i].points) {
            figure << p.at << ',' << p.value << ',';
            if (p.train) figure << *p.train;
            else figure << "NaN";
            figure << '\n';
        }
        figure << "end_of_data\n";
    }
    figure << "set grid lc rgb '#dddddd'\nset key " << (networks ? "top" : "bottom") << " right\n";
    if (networks)
        figure << "set xlabel 'epochs'\nset ylabel 'perplexity: validation, training dashed'\nset logscale "
                  "y\nplot ";
    else
        figure << "set xlabel 'iterations of EM'\nset ylabel \"log-likelihood of the counts with "
                  "pseudo-counts,\\n"
                  "per token above no dynamics, nats\"\n"
               << "plot 0 lc rgb '#777777' dt 2 notitle, ";
    for (std::size_t i = 0; i < logs.size(); ++i) {
        const char* colour = colours[i % 4];
        figure << (i ? ", " : "") << "$log" << i << " using 1:2 with linespoints lw 2 pt 7 ps 0.6 lc rgb '"
               << colour << "' title " << name(o, o.logs, i);
        if (networks)
            figure << ", $log" << i << " using 1:3 with lines lw 1 dt 2 lc rgb '" << colour << "' notitle";
    }
    figure << '\n';
    figure.draw();
    if (networks) compare_networks(o, logs);
}

/// The eigenvalues of A in the unit circle, and the singular values of the Hankel operator beside them.
void draw_systems(const PlotCommand& o) {
    ::plot::Figure figure(o.svg, 900, 420);
    figure << "set multiplot layout 1,2\nset grid lc rgb '#dddddd'\nset key below\n";
    std::string values, singular;
    for (std::size_t i = 0; i < o.systems.size(); ++i) {
        const auto it = lds::load_lds<float>(o.systems[i]);
        const auto spectrum = lds::schur<double>(it.system.A, "plot");
        figure << "$a" << i << " << end_of_data\n";
        for (std::size_t j = 0; j < spectrum.real.size(); ++j)
            figure << spectrum.real[j] << ',' << spectrum.imaginary[j] << '\n';
        figure << "end_of_data\n";
        const std::string colour = colours[i % 4];
        values += ig::message(", $a", i, " using 1:2 with points pt 7 ps 0.5 lc rgb '", colour, "' title ",
                              name(o, o.systems, i));
        if (it.singular_values.empty()) continue;  // of a random start
        figure << "$s" << i << " << end_of_data\n";
        for (std::size_t j = 0; j < it.singular_values.size(); ++j)
            figure << j + 1 << ',' << it.singular_values[j] << '\n';
        figure << "end_of_data\n";
        singular += ig::message(singular.empty() ? "" : ", ", "$s", i, " using 1:2 with lines lw 2 lc rgb '",
                                colour, "' title ", name(o, o.systems, i));
    }
    figure << "set title 'eigenvalues of A'\nset size ratio -1\nset xrange [-1.05:1.05]\nset yrange "
              "[-1.05:1.05]\n"
           << "set parametric\nset trange [0:2*pi]\nplot cos(t), sin(t) lc rgb '#777777' notitle" << values
           << "\nunset parametric\nset autoscale\nset size noratio\nset key inside top right\n"
           << "set title 'singular values of the Hankel operator'\nset xlabel 'number'\nset yrange [0:*]\n";
    if (singular.empty()) figure << "set xrange [0:1]\nplot 0 notitle\n";
    else figure << "plot " << singular << '\n';
    figure << "unset multiplot\n";
    figure.draw();
}

}  // namespace

int plot(const PlotCommand& o) {
    if (o.logs.empty() == o.systems.empty())
        throw ig::UsageError("plot: give either --logs, of fits or of networks, or --systems");
    const auto& drawn = o.logs.empty() ? o.systems : o.logs;
    if (!o.names.empty() && o.names.size() != drawn.size())
        throw ig::DataError(ig::message("plot: found ", o.names.size(), " names for ", drawn.size(),
                                        o.logs.empty() ? " systems" : " logs", ", expected as many"));
    files::Outputs()
        .read("--logs", o.logs)
        .read("--systems", o.systems)
        .write("--svg", o.svg, ::plot::kind())
        .check();
    if (o.logs.empty()) draw_systems(o);
    else draw_logs(o);
    return 0;
}

}  // namespace lt
