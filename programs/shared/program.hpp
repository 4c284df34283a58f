/// @file program.hpp  What all example programs share: the command line, errors, output.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <initializer_list>
#include <iostream>
#include <isogloss/config.hpp>
#include <isogloss/error.hpp>
#include <isogloss/threads.hpp>
#include <isogloss/utf8.hpp>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "interrupt.hpp"

namespace program {

namespace ig = isogloss;

/// Throws DataError for a number on the command line that its type cannot hold: CLI11 takes the nearest.
inline void require_numbers(const CLI::App& app) {
    for (const CLI::Option* option : app.get_options()) {
        const std::string type = option->get_type_name();
        for (const std::string& given : option->results()) {
            const char* expected = nullptr;
            errno = 0;
            const std::size_t first = given.find_first_not_of("+-");
            if ((type.starts_with("UINT") || type.starts_with("INT")) && first != std::string::npos &&
                given[first] == '0' && first + 1 < given.size() && given[first + 1] >= '0' &&
                given[first + 1] <= '9')
                throw ig::DataError(ig::message(option->get_name(), " is ", given,
                                                ", which would be read as octal; write it without ",
                                                "the leading 0"));
            if (type.starts_with("UINT")) {
                std::strtoull(given.c_str(), nullptr, 0);
                if (errno == ERANGE || given.find('-') != std::string::npos)
                    expected = "a whole number of at least 0 and below 2^64";
            } else if (type.starts_with("INT")) {
                std::strtoll(given.c_str(), nullptr, 0);
                if (errno == ERANGE) expected = "a whole number of less than 2^63";
            } else if (type.starts_with("FLOAT")) {
                const double value = std::strtod(given.c_str(), nullptr);
                if (errno == ERANGE && (value == 0 || std::isinf(value)))
                    expected = "0, or a number from 1e-307 to 1e308 or its negative";
            }
            if (expected)
                throw ig::DataError(ig::message(option->get_name(), " is ", given, ", expected ", expected));
        }
    }
    for (const CLI::App* command : app.get_subcommands()) require_numbers(*command);
}

/// Throws UsageError for one of these options that is given on the command line of a program or a command. `why` it has
/// no effect there: "with --resume", "without --text, …".
inline void without(const CLI::App& app, const std::string& why, std::initializer_list<const char*> options) {
    const std::string command =
        app.get_parent() ? app.get_name() + ": " : "";  // else the name of the program
    for (const char* option : options)
        if (app.count(option) > 0)
            throw ig::UsageError(ig::message(command, option, " has no effect ", why, "; leave it out"));
}

/// The same for all options but these.
inline void with_only(const CLI::App& app, const std::string& why, const std::set<std::string>& options) {
    for (const CLI::Option* option : app.get_options())
        if (const std::string name = option->get_name(); option->count() > 0 && !options.contains(name))
            without(app, why, {name.c_str()});
}

/// The option --portable of a program or command; it acts as it is read.
inline void add_portable(CLI::App& app) {
    app.add_flag_callback(
        "--portable", [] { ig::portable(true); }, "numbers of the same bits on every processor");
}

/// The error in a first argument that must be a command: "'trian' is not a command, expected …"; empty if there
/// is none or an option comes first.
inline std::string wrong_command(const CLI::App& app, int argc, char** argv) {
    const std::string first = argc > 1 ? argv[1] : "";
    if (app.get_require_subcommand_min() == 0 || first.empty() || first[0] == '-') return {};
    std::string names;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
        if (command->get_name() == first) return {};
        names += (names.empty() ? "" : ", ") + command->get_name();
    }
    return "'" + first + "' is not a command, expected one of " + names;
}

/// How many letters must be changed, added or left out to make one word of another.
inline std::size_t edits(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i)
        for (std::size_t j = 1, diagonal = std::exchange(row[0], i); j <= b.size(); ++j)
            diagonal = std::exchange(
                row[j], std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])}));
    return row.back();
}

/// The error in arguments that are left over: "'--word' is not an option; did you mean --words?"
inline std::string wrong_option(const CLI::App& app) {
    const auto commands = app.get_subcommands();
    const CLI::App& command = commands.empty() ? app : *commands.front();
    const auto left = app.remaining(true);
    const auto option = std::ranges::find_if(left, [](const auto& a) { return a.starts_with("-"); });
    if (option == left.end()) return ig::in_quotes(left.empty() ? "" : left.front()) + " is not expected";
    const std::string name = option->substr(0, option->find('='));
    std::string nearest;
    std::size_t least = 3;  // as many are another word
    for (const CLI::Option* known : command.get_options())
        for (const std::string& it : known->get_lnames())
            if (const auto n = edits(name, "--" + it); n < least) {
                least = n;
                nearest = "--" + it;
            }
    return ig::in_quotes(name) + " is not an option" +
           (nearest.empty() ? "" : "; did you mean " + nearest + "?");
}

/// The help of a program, in lines of at most 80 columns. Of a command with options in `first`, a list of groups, --help
/// shows these alone, and --help-all the other groups below them.
class Help : public CLI::Formatter {
public:
    explicit Help(std::vector<std::string> first) : first_(std::move(first)) {}

    /// Whether a command has options that only --help-all shows.
    bool has_more(const CLI::App& app) const {
        const auto groups = app.get_groups();
        return std::ranges::any_of(groups, [this](const auto& g) { return is_first(g); });
    }
    std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
        return make_description(app) + make_usage(app, std::move(name)) + make_positionals(app) +
               options(app, mode) + make_subcommands(app, mode) + make_footer(app);
    }
    std::string make_option(const CLI::Option* option, bool positional) const override {
        std::string type = option->get_type_size() == 0 ? "" : option->get_type_name(), choices;
        if (const auto colon = type.find(':'); colon != std::string::npos) {
            choices = type.substr(colon + 1);
            type.resize(colon);
            if (choices.starts_with("{")) {
                for (const char c : choices.substr(1, choices.size() - 2))
                    type += c == ',' ? ", " : std::string(1, c);
                choices = ": " + type.substr(colon);
                type.resize(colon);
            } else choices = " (" + choices + ")";
        }
        const std::string now = option->get_default_str();
        return row(make_option_name(option, positional) + (type.empty() ? "" : " " + type),
                   make_option_desc(option) + choices + (now.empty() ? "" : " [" + now + "]") +
                       (option->get_required() ? "; must be given" : ""));
    }
    std::string make_subcommand(const CLI::App* command) const override {
        return row(command->get_name(), command->get_description());
    }
    std::string make_description(const CLI::App* app) const override {
        return app->get_description().empty() ? "" : wrapped("", app->get_description(), 0);
    }

private:
    static constexpr std::size_t columns = 80, left = 26;

    std::string options(const CLI::App* app, CLI::AppFormatMode mode) const {
        std::vector<std::string> groups;
        for (const auto& g : app->get_groups())
            if (!g.empty() && !is_first(g)) groups.push_back(g);
        const bool more = has_more(*app), brief = more && mode == CLI::AppFormatMode::Normal;
        if (brief) groups.clear();
        if (more) groups.insert(groups.begin(), first_.begin(), first_.end());
        std::string out;
        for (const auto& group : groups) {
            std::string lines;
            for (const CLI::Option* option : app->get_options())
                if (option->get_group() == group && option->nonpositional() &&
                    (!app->get_parent() ||
                     (option != app->get_help_ptr() && option != app->get_help_all_ptr())))
                    lines += make_option(option, false);
            if (!lines.empty()) out += "\n" + group + ":\n" + lines;
        }
        return out + (brief ? "\n--help-all shows all other options too.\n" : "");
    }
    bool is_first(const std::string& group) const { return std::ranges::count(first_, group) > 0; }
    /// A name, and what it is for beside it; or below, if the name is long.
    static std::string row(const std::string& name, const std::string& what) {
        const std::string begin = "  " + name;
        if (begin.size() + 2 > left) return begin + "\n" + wrapped(std::string(left, ' '), what, left);
        return wrapped(begin + std::string(left - begin.size(), ' '), what, left);
    }
    /// Words after `line`, in lines that begin in this column.
    static std::string wrapped(std::string line, const std::string& words, std::size_t column) {
        std::string out;
        std::istringstream in(words);
        std::size_t used = line.size();
        for (std::string word; in >> word;) {
            const std::size_t width = std::size_t(std::ranges::count_if(
                word, [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; }));
            if (used > column && used + 1 + width > columns) {
                out += line + "\n";
                line.assign(column, ' ');
                used = column;
            }
            if (used > column) line += ' ', ++used;
            line += word;
            used += width;
        }
        return out + line + "\n";
    }

    std::vector<std::string> first_;
};

/// Reads the command line; returns the exit status if that ends the program (--help, --version, errors). `first`: the
/// groups that --help shows, see Help.
inline std::optional<int> parse(CLI::App& app, int argc, char** argv, std::vector<std::string> first = {}) {
    app.set_version_flag("--version", std::string("isogloss " ISOGLOSS_VERSION ", ") + ig::configuration());
    const auto help = std::make_shared<Help>(std::move(first));
    app.formatter(help);
    app.name(
        std::filesystem::path(argv[0]).filename().string());  // a long path would not fit a line of --help
    for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
        command->formatter(help);
        if (help->has_more(*command)) command->set_help_all_flag("--help-all", "all options");
    }
    try {
        if (const std::string wrong = wrong_command(app, argc, argv); !wrong.empty())
            throw CLI::ArgumentMismatch(wrong);
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        // What is left over first: a required option may be missing because its name has a slip.
        const bool missing = dynamic_cast<const CLI::RequiredError*>(&error);
        if (dynamic_cast<const CLI::ExtrasError*>(&error) || (missing && !app.remaining(true).empty()))
            return app.exit(CLI::ArgumentMismatch(wrong_option(app)));
        return app.exit(error);
    }
    require_numbers(app);
    return std::nullopt;
}

/// Runs a program on its arguments; returns its exit status. Every error is one sentence on stderr and status
/// 1, including errors of standard output, which show at the latest when it is flushed. `large` names what
/// there may not be enough memory for.
///
///     int main(int argc, char** argv) { return program::run(argc, argv, work, "a model of this size"); }
inline int run(int argc, char** argv, int (*work)(int, char**), const char* large = "this request") {
    // If one of these were closed, a file would be opened in its place and receive what is printed.
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (::fcntl(stream, F_GETFD) < 0) [[maybe_unused]]
            const int it = ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    std::signal(SIGXFSZ, SIG_IGN);  // too large a file is then a write error, like a full disk
    int status = 1;
    try {
        status = work(argc, argv);
    } catch (const std::bad_alloc&) {
        std::cerr << ig::message("isogloss: there is not enough memory for ", large, '\n');
    } catch (const ig::Error& error) {
        std::cerr << ig::message(error.what(), '\n');
    } catch (const std::exception& error) {
        std::cerr << ig::message("isogloss: ", error.what(), '\n');
    }
    errno = 0;
    std::cout.flush();
    const bool printed = std::fflush(stdout) == 0 && std::cout && !std::ferror(stdout);
    const bool closed = ::close(STDOUT_FILENO) == 0;
    if ((printed && closed) || interrupt::wanted == SIGPIPE) return status;
    std::cerr << "isogloss: standard output could not be written"
              << (errno ? std::string(": ") + std::strerror(errno) : "")
              << "; what was printed is incomplete\n";
    return status == 0 ? 1 : status;
}

}  // namespace program
