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
        const auto cells = static_cast<std::size_t>(20 * std::clamp(share, 0.0, 1.0));
        // A line as wide as the terminal or wider would leave its beginning on the screen at every update.
        std::cout << "\r\033[K"
                  << (title_ + " [" + std::string(cells, '=') + std::string(20 - cells, ' ') + "] " +
                      done_of_all + note())
                         .substr(0, columns() - 1)
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
    // Of the terminal, which may change while the program runs; 80 if unknown.
    static std::size_t columns() {
        winsize size{};
        return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
    }

    std::string title_;
    bool shown_, terminal_, drawn_ = false;
    Stopwatch since_;
};

}  // namespace program
