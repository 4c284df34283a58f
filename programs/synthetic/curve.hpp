// Learning curves as a figure: bits of another text over computing time, and the entropy rate as a line.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <isogloss/file/reader.hpp>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../shared/csv_log.hpp"
#include "../shared/gnuplot.hpp"
#include "tasks.hpp"

class Curve {
public:
    // First line of the table that --csv writes.
    static constexpr const char* header = "seconds,rounds,training_bits,choice_bits,success,start,saturated";

    // One evaluation during training; each network of --starts has its own curve.
    struct Point {
        double seconds, training_bits, choice_bits;
        tasks::Index start;
    };
    // Reads tables written by --csv, which are drawn beside the curve of this call. Throws FileError for another
    // table.
    explicit Curve(const std::vector<std::string>& beside) {
        for (const auto& file : beside)
            beside_.emplace_back(std::filesystem::path(file).stem().string(), read(file));
    }
    void add(const Point& p) { points_.push_back(p); }

    // Draws the curve of this call under its name, and those beside it. The axes begin where the first curve
    // enters the range of bits, which ends a tenth above the worst end of a curve. Without a line to draw it
    // says so and writes nothing. Throws as plot::Figure.
    void draw(const std::string& path, const std::string& name, double entropy) const {
        std::vector<Named> curves;
        if (points_.size() > 1) curves.emplace_back(name, points_);
        curves.insert(curves.end(), beside_.begin(), beside_.end());
        if (curves.empty() && !std::isfinite(entropy)) {
            std::fprintf(stderr, "synthetic: no figure '%s': training ended at its first look\n",
                         path.c_str());
            return;
        }

        const double never = std::numeric_limits<double>::infinity();
        double lowest = std::isfinite(entropy) ? entropy : never, top = 0, from = never;
        for (const auto& [title, points] : curves)
            for (std::size_t i = 0; i < points.size(); ++i)
                if (i + 1 == points.size() || points[i + 1].start != points[i].start) {
                    lowest = std::min({lowest, points[i].training_bits, points[i].choice_bits});
                    top = std::max(top, 1.1 * points[i].choice_bits);
                }
        top = std::max(top, 1.2 * lowest);
        for (const auto& [title, points] : curves)
            for (const Point& p : points)
                if (p.choice_bits < top && p.seconds > 0) from = std::min(from, p.seconds / 2);

        plot::Figure figure(path, 700, 480);
        figure << "set grid lc rgb '#dddddd'\nset key tmargin horizontal\nset logscale x\nset autoscale "
                  "xfixmax\n"
               << "set xlabel 'seconds of computing time'\nset ylabel 'bits per predicted symbol'\n";
        if (top > lowest) figure << "set yrange [" << 0.95 * lowest << ':' << top << "]\n";
        if (from < never) figure << "set xrange [" << from << ":]\n";
        std::string lines;
        const auto plot = [&](const std::string& what) { lines += (lines.empty() ? "" : ", ") + what; };
        if (std::isfinite(entropy))
            plot(isogloss::message(entropy, " with lines lw 1.5 dt 2 lc rgb '#555555' title 'entropy rate'"));
        for (std::size_t k = 0; k < curves.size(); ++k) {
            const auto& [title, points] = curves[k];
            const std::string block = isogloss::message("$curve", k);
            figure << block << " << end_of_data\n";
            for (std::size_t i = 0; i < points.size(); ++i) {
                const Point& p = points[i];
                if (i > 0 && points[i - 1].start != p.start) figure << '\n';  // interrupts the line
                if (p.seconds > 0)
                    figure << p.seconds << ',' << p.training_bits << ',' << p.choice_bits << '\n';
            }
            figure << "end_of_data\n";
            plot(block + " using 1:3 with lines lw 2 title " + plot::quoted(title) + " noenhanced");
            if (k == 0 && points_.size() > 1)
                plot(block + " using 1:2 with lines lw 1 dt 3 title 'its training text'");
        }
        figure << "plot " << lines << '\n';
        figure.draw();
    }

private:
    using Named = std::pair<std::string, std::vector<Point>>;

    // The points of a table written by --csv.
    static std::vector<Point> read(const std::string& file) {
        isogloss::file::LineReader table(file);
        std::string_view line;
        const auto refuse = [&](const std::string& why) {
            throw isogloss::FileError(
                isogloss::message("'", file, "' ", why, " of synthetic --csv; leave it out of --beside"));
        };
        if (!table.next(line) || line != header) refuse("is not a learning curve");
        std::vector<Point> points;
        while (table.next(line)) {
            std::vector<double> x;  // seconds, rounds, both bits, success, start, saturated
            const auto fields = files::csv_fields(line);
            for (const std::string_view field : fields)
                if (const auto number = files::csv_number(field)) x.push_back(*number);
            if (x.size() != 7 || fields.size() != 7 || !(x[5] >= 0 && x[5] < 1000))
                refuse("has a line '" + std::string(line) + "', which is not one of a learning curve");
            points.push_back({x[0], x[2], x[3], tasks::Index(x[5])});
        }
        return points;
    }

    std::vector<Point> points_;
    std::vector<Named> beside_;
};
