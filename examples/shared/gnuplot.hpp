/// @file gnuplot.hpp  Figures of the examples: SVG files drawn by gnuplot.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <isogloss/io/atomic_file.hpp>
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
        // By way of a file: a pipe whose reader never started would end the program by a signal.
        const std::string script = std::filesystem::absolute(path_ + ".gnuplot").string();
        std::string argument = "'";
        for (const char c : script) argument += c == '\'' ? std::string("'\\''") : std::string(1, c);
        ig::write_atomically(script,
                             [this](ig::AtomicFile& out) { out.write(script_.str() + "set output\n"); });
        const bool drawn = std::system(("gnuplot " + argument + "'").c_str()) == 0;
        std::error_code failed, ignored;
        if (drawn) std::filesystem::rename(part(), path_, failed);
        std::filesystem::remove(script, ignored);
        if (drawn && !failed) return;
        std::filesystem::remove(part(), ignored);
        throw ig::FileError(ig::text("'", path_, "' could not be drawn by gnuplot; it says why above. ",
                                     "On Debian and Ubuntu: apt-get install gnuplot-nox"));
    }

private:
    std::string part() const { return path_ + ".part"; }
    std::string path_;
    std::ostringstream script_;
};

}  // namespace plot
