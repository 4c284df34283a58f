/// @file gnuplot.hpp  Figures of the programs: SVG files drawn by gnuplot.
#pragma once

#include <cstdlib>
#include <isogloss/file/input_file.hpp>
#include <isogloss/file/output_file.hpp>
#include <locale>
#include <sstream>
#include <string>
#include <utility>

#include "outputs.hpp"
#include "temporary_folder.hpp"

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
    /// `markup`: gnuplot's, such as x^2, in texts; without it they appear as they are. (Of a label in particular,
    /// `noenhanced` is not enough: characters such as & and { then disappear from the SVG.)
    Figure(std::string path, int width, int height, bool markup = true) : path_(std::move(path)) {
        script_.imbue(std::locale::classic());
        script_ << "set terminal svg size " << width << "," << height
                << " font 'sans-serif,12' background 'white' " << (markup ? "enhanced\n" : "noenhanced\n")
                << "set datafile separator ','\nset encoding utf8\n";
    }

    template <class Value> Figure& operator<<(const Value& value) {
        script_ << value;
        return *this;
    }

    /// Throws FileError if gnuplot is missing or fails; a file of the name is then left untouched.
    void draw() const {
        // In a temporary folder of its own, so that no names collide. Through a file: a pipe whose reader
        // never started would end the program by a signal.
        const files::TemporaryFolder folder;
        const std::string script = folder.file("script"), picture = folder.file("picture");
        ig::file::write_atomically(script, [&](ig::file::OutputFile& out) {
            out.write("set output " + quoted(picture) + "\n" + script_.str() + "set output\n");
        });
        std::string argument = "'";
        for (const char c : script) argument += c == '\'' ? std::string("'\\''") : std::string(1, c);
        if (std::system(("gnuplot " + argument + "'").c_str()) != 0)
            throw ig::FileError(ig::message("'", path_,
                                            "' could not be drawn by gnuplot; see its message above. ",
                                            "On Debian and Ubuntu: apt-get install gnuplot-nox"));
        const std::string svg = ig::file::InputFile(picture).read_all();
        ig::file::write_atomically(path_, [&](ig::file::OutputFile& out) { out.write(svg); });
    }

private:
    std::string path_;
    std::ostringstream script_;
};

/// A picture that gnuplot drew.
inline files::Kind kind() {
    return {"picture drawn by gnuplot", [](const std::string& path) {
                ig::file::InputFile file(path);
                std::string beginning(4096, '\0');
                file.read(beginning.data(), std::ssize(beginning));
                return beginning.find("<svg") != std::string::npos &&
                       beginning.find("GNUPLOT") != std::string::npos;
            }};
}

}  // namespace plot
