// The part of the fuzz targets that is compiled once: libFuzzer's hooks, the files, the changes of texts.
//
// At the end each program prints how many inputs were taken. Where fewer than 1 in 50 of at least 2000 were,
// the mutator has lost its way to the code behind the checks, and the program fails.
#include "fuzz.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace fuzz {
namespace {

std::size_t runs = 0, taken = 0;

// A folder of this process, removed at its end.
struct Folder {
    std::filesystem::path path;
    Folder() {
        const bool shared = ::access("/dev/shm", W_OK) == 0;
        path = shared ? "/dev/shm" : std::filesystem::temp_directory_path();
        path /= "isogloss_fuzz_" + std::to_string(::getpid());
        std::filesystem::create_directory(path);
    }
    ~Folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
};
const std::filesystem::path& folder() {
    static const Folder it;
    return it.path;
}

void report() {
    if (runs == 0) return;
    const double share = static_cast<double>(taken) / static_cast<double>(runs);
    std::fprintf(stderr, "taken: %zu of %zu inputs (%.1f %%)\n", taken, runs, 100 * share);
    if (runs >= 2000 && share < 0.02) {
        std::fprintf(stderr, "isogloss: too few for the code behind the checks to see variety\n");
        std::_Exit(1);
    }
}

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts(1);
    for (const char c : text)
        if (c == separator) parts.emplace_back();
        else parts.back() += c;
    return parts;
}
std::string join(const std::vector<std::string>& parts, char separator) {
    std::string text;
    for (std::size_t i = 0; i < parts.size(); ++i) text += (i ? std::string(1, separator) : "") + parts[i];
    return text;
}

// A list with one of its parts lost, doubled, or exchanged with another.
void rearrange(std::vector<std::string>& parts, Dice& dice) {
    const std::size_t at = dice.below(parts.size()), other = dice.below(parts.size());
    switch (dice.below(3)) {
        case 0:
            if (parts.size() > 1) parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at));
            break;
        case 1:
            parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(other), std::string(parts[at]));
            break;
        default:
            std::swap(parts[at], parts[other]);
    }
}

}  // namespace

std::string blind(std::string bytes, std::size_t most) {
    const std::size_t size = bytes.size();
    bytes.resize(std::max(size + 8, most));
    bytes.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(bytes.data()), size, bytes.size()));
    return bytes;
}

std::string number(Dice& dice) {
    static constexpr const char* all[] = {"0",
                                          "1",
                                          "2",
                                          "3",
                                          "7",
                                          "-1",
                                          "127",
                                          "255",
                                          "256",
                                          "65535",
                                          "65536",
                                          "2147483647",
                                          "2147483648",
                                          "4294967295",
                                          "4294967296",
                                          "1000000000000",
                                          "4611686018427387904",
                                          "9223372036854775807",
                                          "9223372036854775808",
                                          "18446744073709551615",
                                          "-9223372036854775808",
                                          "1e999",
                                          "-1e999",
                                          "1e-999",
                                          "1e39",
                                          "3.5e38",
                                          "1e-46",
                                          "0.5",
                                          "-0",
                                          "nan",
                                          "inf",
                                          "0x10",
                                          "1.",
                                          ".5",
                                          "+1",
                                          "007"};
    return dice.pick(all);
}

std::string mutate_lines(std::string text, Dice& dice, char separator) {
    static const std::string strange[] = {std::string("\0", 1),
                                          "\r",
                                          "\r\n",
                                          "\t",
                                          " ",
                                          "\\",
                                          "\\x0A",
                                          "\\x41",
                                          "\xEF\xBB\xBF",
                                          "\xFF",
                                          "\xC3",
                                          "\xC3\xA9",
                                          "\xED\xA0\x80",
                                          "\xF4\x90\x80\x80",
                                          "<unk>",
                                          "<eos>",
                                          "\x1B[2J",
                                          "#",
                                          ":"};
    auto lines = split(text, '\n');
    for (std::size_t n = 1 + dice.below(3); n-- > 0;) {
        if (dice.chance(0.3)) {
            rearrange(lines, dice);
            continue;
        }
        std::string& line = dice.pick(lines);
        auto fields = split(line, separator);
        std::string& field = dice.pick(fields);
        switch (dice.below(6)) {
            case 0:
                rearrange(fields, dice);
                break;
            case 1:
                field = number(dice);
                break;
            case 2: {
                auto others = split(dice.pick(lines), separator);
                field = dice.pick(others);
                break;
            }
            case 3:
                field.insert(dice.below(field.size() + 1), dice.pick(strange));
                break;
            default:
                field = blind(field, field.size() + 8);
        }
        line = join(fields, separator);
    }
    return join(lines, '\n');
}

std::string as_file(std::string_view bytes) {
    const std::string path = folder() / "input";
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path;
}

std::string other_file() { return folder() / "output"; }

std::string contents(const std::string& path) {
    std::ostringstream out;
    out << std::ifstream(path, std::ios::binary).rdbuf();
    return out.str();
}

void failed(const char* condition, const char* file, int line) {
    std::fprintf(stderr, "%s:%d: not so: %s\n", file, line, condition);
    std::abort();
}

void check_message(std::string_view message) {
    FUZZ_REQUIRE(!message.empty() && message.size() < 100000);
    for (const char c : message)
        FUZZ_REQUIRE(c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F));
}

}  // namespace fuzz

extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier): the sanitizer's name for it
const char* __asan_default_options();
const char* __asan_default_options() {
    return "quarantine_size_mb=32:strict_string_checks=1:detect_stack_use_after_return=1";
}
const char* __ubsan_default_options();
const char* __ubsan_default_options() { return "print_stacktrace=1"; }
// NOLINTEND(bugprone-reserved-identifier)

int LLVMFuzzerInitialize(int* count, char*** arguments);
int LLVMFuzzerInitialize(int* count, char*** arguments) {
    fuzz::folder();
    std::atexit(fuzz::report);
    // Inputs as long as they are made, from the start. A reader that wants 400 MB for 8 kB has believed a
    // number.
    static char defaults[][32] = {"-len_control=0", "-max_len=8192", "-timeout=100", "-entropic=0",
                                  "-malloc_limit_mb=400"};
    static std::vector<char*> all(*arguments, *arguments + *count);
    for (auto& option : defaults) all.insert(all.begin() + 1, option);
    *count = static_cast<int>(all.size());
    all.push_back(nullptr);
    *arguments = all.data();
    return 0;
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    bool was_taken = false;
    fuzz::accepted([&] { was_taken = fuzz::take({reinterpret_cast<const char*>(data), size}); });
    ++fuzz::runs;
    fuzz::taken += was_taken;
    return 0;
}

std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed);
std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
    fuzz::Dice dice(seed);
    // libFuzzer keeps what was refused in a new way too, and most changes of that are refused again: half of
    // the changes begin from an input that is taken.
    const std::string input(reinterpret_cast<const char*>(data), size);
    std::string output = fuzz::mutate(size > 1 && dice.chance(0.5) ? input : fuzz::fresh(dice), dice);
    if (output.empty() || output.size() > most) output = fuzz::fresh(dice);
    output.resize(std::min(output.size(), most));
    std::memcpy(data, output.data(), output.size());
    return output.size();
}
}
