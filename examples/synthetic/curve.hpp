// Learning curves as a figure: bits of another text over computing time, and the entropy rate as a line.
#pragma once

#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "../shared/gnuplot.hpp"
#include "tasks.hpp"

class Curve {
public:
    // First line of the table that --csv writes, and of earlier ones without the share of saturated units.
    static constexpr const char *header = "seconds,rounds,training_bits,choice_bits,success,start,saturated",
                                *earlier = "seconds,rounds,training_bits,choice_bits,success,start";

    // One evaluation during training; each network of --starts has its own curve.
    struct Point {
        double seconds, training_bits, choice_bits;
        tasks::Index start;
    };
    void add(const Point& p) { points_.push_back(p); }

    // Draws the curve of this call under its name, and those of tables written by --csv. Throws FileError for
    // another table, and as plot::Figure.
    void draw(const std::string& path, const std::string& name, double entropy,
              const std::vector<std::string>& beside) const {
        plot::Figure figure(path, 700, 440);
        figure << "$curve << end_of_data\n";
        for (std::size_t i = 0; i < points_.size(); ++i) {
            const Point& p = points_[i];
            if (i > 0 && points_[i - 1].start != p.start) figure << '\n';
            if (p.seconds > 0) figure << p.seconds << ',' << p.training_bits << ',' << p.choice_bits << '\n';
        }
        figure << "end_of_data\nset grid lc rgb '#dddddd'\nset key top right\nset logscale x\n"
               << "set xlabel 'seconds of computing time'\nset ylabel 'bits per predicted symbol'\n";
        const std::string width = " with lines lw 2 title ";
        std::string curves;
        const auto plot = [&](const std::string& what) { curves += (curves.empty() ? "" : ", ") + what; };
        if (std::isfinite(entropy))
            plot(isogloss::message(entropy, " with lines lw 1.5 dt 2 lc rgb '#555555' title 'entropy rate'"));
        if (points_.size() > 1) {
            plot("$curve using 1:3" + width + plot::quoted(name) + " noenhanced");
            plot("$curve using 1:2 with lines lw 1 dt 3 title 'its training text'");
        }
        for (const auto& file : beside)
            plot(plot::quoted(std::filesystem::absolute(file).string()) + " using 1:4" + width +
                 plot::quoted(std::filesystem::path(file).stem().string()) + " noenhanced");
        for (const auto& file : beside) {
            const std::string table = isogloss::file::InputFile(file).read_all(),
                              first = table.substr(0, table.find('\n'));
            if (first != header && first != earlier)
                throw isogloss::FileError(isogloss::message(
                    "'", file, "' is not a learning curve of synthetic --csv; leave it out of --beside"));
        }
        figure << "plot " << curves << '\n';
        figure.draw();
    }

private:
    std::vector<Point> points_;
};
