/// @file progress.hpp  The progress of a long run: a bar on a terminal, occasional lines elsewhere.
#pragma once

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <iostream>
#include <string>
#include <utility>

namespace program {

/// Seconds since construction, reset() or lap().
class Stopwatch {
public:
    double seconds() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    }
    void reset() { start_ = std::chrono::steady_clock::now(); }
    /// The seconds, and resets.
    double lap() {
        const auto now = std::chrono::steady_clock::now();
        return std::chrono::duration<double>(now - std::exchange(start_, now)).count();
    }

private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Processor seconds of all threads of this process since construction. Unlike wall-clock time they do not
/// include waiting for other processes on a busy machine.
class CpuTime {
public:
    double seconds() const { return static_cast<double>(std::clock() - start_) / CLOCKS_PER_SEC; }

private:
    std::clock_t start_ = std::clock();
};

/// Columns of the terminal that standard output is, which may change while the program runs; 80 if unknown.
inline std::size_t terminal_columns() {
    winsize size{};
    return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/// Lines of at most `columns` columns: longer ones are broken between words, and what follows begins below the first
/// word after a label, which two blanks end, or where an indented line does.
inline std::string fitted(const std::string& text, std::size_t columns) {
    std::string out;
    std::size_t indent = 0, used = 0;  // of the line that is written
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t word = std::min(text.find_first_not_of(' ', at), text.size());
        const std::size_t end = std::min(text.find_first_of(" \n", word), text.size());
        const auto wide =
            std::count_if(text.begin() + std::ptrdiff_t(word), text.begin() + std::ptrdiff_t(end),
                          [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; });
        const std::size_t blanks = word - at, width = static_cast<std::size_t>(wide);
        if (indent == 0 && (used == 0 || blanks > 1)) indent = used + blanks;
        if (used > indent && used + blanks + width > columns) {
            out += '\n' + std::string(indent, ' ') + text.substr(word, end - word);
            used = indent + width;
        } else {
            out += text.substr(at, end - at);
            used += blanks + width;
        }
        at = end;
        if (at < text.size() && text[at] == '\n') {
            out += text[at++];
            indent = used = 0;
        }
    }
    return out;
}
/// The same for the terminal; unchanged where standard output is none.
inline std::string fitted(const std::string& text) {
    return ::isatty(STDOUT_FILENO) == 1 ? fitted(text, terminal_columns()) : text;
}

/// A bar with what is done, in at most `columns` columns. What does not fit is given up in this order: cells of the bar
/// down to five, the bar, parts of the note (", " lies between them) but the last, from the right.
inline std::string bar(const std::string& title, double share, const std::string& done_of_all,
                       std::string note, std::size_t columns) {
    const auto width = [&] { return title.size() + 1 + done_of_all.size() + note.size(); };
    const std::size_t left = columns > width() ? columns - width() : 0;
    if (left >= 8) {
        const std::size_t cells = std::min<std::size_t>(20, left - 3);
        const auto done = static_cast<std::size_t>(static_cast<double>(cells) * std::clamp(share, 0.0, 1.0));
        return title + " [" + std::string(done, '=') + std::string(cells - done, ' ') + "] " + done_of_all +
               note;
    }
    while (width() > columns) {
        const auto last = note.rfind(", ");
        if (last == std::string::npos) break;
        const auto before = last == 0 ? std::string::npos : note.rfind(", ", last - 1);
        note.erase(before == std::string::npos ? 0 : before,
                   before == std::string::npos ? last + 2 : last - before);
    }
    return (title + " " + done_of_all + note).substr(0, columns);
}

/// Shows how much of something is done; see update().
class Progress {
public:
    /// `shown`: false if only results go to standard output.
    explicit Progress(std::string title, bool shown = true)
        : title_(std::move(title)), shown_(shown), terminal_(::isatty(STDOUT_FILENO) == 1) {}
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    ~Progress() { clear(); }

    /// `done` of `all` (0: unknown); `note` returns whatever else is worth showing. Draws at most ten
    /// times a second on a terminal, and writes a line every twenty seconds elsewhere.
    template <class Note> void update(std::int64_t done, std::int64_t all, Note&& note) {
        if (!shown_ || since_.seconds() < (terminal_ ? 0.1 : 20)) return;
        since_.reset();
        const double share = all > 0 ? static_cast<double>(done) / static_cast<double>(all) : 0;
        const std::string done_of_all = all > 0 ? percent(share) + " %, " : "";
        if (!terminal_) {
            std::cout << title_ << ": " << done_of_all << note() << std::endl;
            return;
        }
        // A line as wide as the terminal or wider would leave its beginning on the screen at every update.
        std::cout << "\r\033[K" << bar(title_, share, done_of_all, note(), terminal_columns() - 1)
                  << std::flush;
        drawn_ = true;
    }
    /// Removes the bar, so that a line can be written.
    void clear() {
        if (drawn_) std::cout << "\r\033[K" << std::flush;
        drawn_ = false;
    }

private:
    static std::string percent(double share) { return std::to_string(std::lround(100 * share)); }

    std::string title_;
    bool shown_, terminal_, drawn_ = false;
    Stopwatch since_;
};

}  // namespace program
