// Reads the safetensors files named on standard input, one a line, and prints for each either "refused" and
// the reason, or "taken", its metadata and its tensors; the fields are separated by tabs, names and strings
// in hexadecimal digits. See ../against_safetensors.py.
#include <iostream>
#include <isogloss/io/safetensors.hpp>
#include <string>

using namespace isogloss;
using namespace isogloss::io;

namespace {

std::string hexadecimal(std::string_view bytes) {
    std::string out;
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        out += {"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
    }
    return out;
}

void list(const std::string& path) {
    const auto file = Safetensors::open(path, {.require_checksum = false});
    std::cout << "taken";
    for (const auto& [key, value] : file.metadata())
        std::cout << "\tm " << hexadecimal(key) << ' ' << hexadecimal(value);
    for (const TensorView& t : file.tensors())
        std::cout << "\tt " << hexadecimal(t.name) << ' ' << info(t.dtype).name << ' '
                  << dimensions_text(t.shape) << ' '
                  << hexadecimal({reinterpret_cast<const char*>(t.bytes.data()), t.bytes.size()});
    std::cout << '\n';
}

}  // namespace

int main() {
    for (std::string path; std::getline(std::cin, path);) {
        try {
            list(path);
        } catch (const FileError& error) {
            std::cout << "refused\t" << error.what() << '\n';
        }
    }
}
