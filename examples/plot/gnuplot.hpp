/// @file gnuplot.hpp  Figures of the examples: SVG files drawn by gnuplot.
#pragma once

#include <cstdio>
#include <filesystem>
#include <isogloss/error.hpp>
#include <locale>
#include <sstream>
#include <string>
#include <system_error>

namespace plot {

namespace ig = isogloss;

/// A string in gnuplot's single quotes.
inline std::string quoted(const std::string& s) {
    std::string out = "'";
    for (const char c : s) out += c == '\'' ? std::string("''") : std::string(1, c);
    return out + "'";
}

/// A script for gnuplot that draws one SVG file of a given size in points; `<<` adds to it, `draw` runs it.
///
///     plot::Figure figure("curve.svg", 600, 400);
///     figure << "plot " << plot::quoted("curve.csv") << " using 1:2 with lines\n";
///     figure.draw();
class Figure {
public:
    Figure(std::string path, int width, int height) : path_(std::move(path)) {
        script_.imbue(std::locale::classic());
        script_ << "set terminal svg size " << width << "," << height
                << " font 'sans-serif,12' background 'white' enhanced\nset output " << quoted(part()) << '\n'
                << "set datafile separator ','\nset encoding utf8\n";
    }

    template <class Value> Figure& operator<<(const Value& value) {
        script_ << value;
        return *this;
    }

    /// Throws FileError where gnuplot is not there or could not draw; no file of the name is touched then.
    void draw() const {
        std::FILE* gnuplot = ::popen("gnuplot", "w");
        const std::string script = script_.str() + "set output\n";
        const bool written =
            gnuplot && std::fwrite(script.data(), 1, script.size(), gnuplot) == script.size();
        const int status = gnuplot ? ::pclose(gnuplot) : -1;
        std::error_code failed;
        if (written && status == 0) std::filesystem::rename(part(), path_, failed);
        if (written && status == 0 && !failed) return;
        std::filesystem::remove(part(), failed);
        throw ig::FileError(ig::text("'", path_, "' could not be drawn by gnuplot; it says why above. ",
                                     "On Debian and Ubuntu: apt-get install gnuplot-nox"));
    }

private:
    std::string part() const { return path_ + ".part"; }
    std::string path_;
    std::ostringstream script_;
};

}  // namespace plot
