// Safetensors files, foreign ones and those with isogloss's checksum.
#include <algorithm>
#include <isogloss/io/safetensors.hpp>

#include "safetensors_bytes.hpp"

using namespace isogloss;

std::string fuzz::fresh(Dice& dice) {
    std::vector<double> numbers(24);
    for (double& x : numbers) x = static_cast<double>(dice.below(100));
    const std::string words = "the\nof\n";
    const std::vector<std::uint8_t> small{1, 2, 3};
    io::write_safetensors(
        other_file(),
        std::vector{io::tensor_view<double>("E", {4, 6}, numbers), io::text_view("words", words),
                    io::tensor_view<std::uint8_t>("s", {3, 1}, small),
                    io::tensor_view<float>("empty", {0, 5}, {})},
        {{"cell", "lstm"}});
    auto file = parse(contents(other_file()));
    FUZZ_REQUIRE(file && file->checksum && file->tensors.size() == 4);
    file->checksum = dice.chance(0.5);
    return put_together(*file, dice, false);
}

std::string fuzz::mutate(const std::string& input, Dice& dice) {
    return mutate_safetensors(input, dice, change_structure);
}

namespace {

bool same(const io::Safetensors& a, const io::Safetensors& b) {
    bool same = a.tensors().size() == b.tensors().size() && a.metadata() == b.metadata();
    for (const io::TensorView& t : a.tensors()) {
        const io::TensorView* const other = b.find(t.name);
        same = same && other && t.dtype == other->dtype && t.shape == other->shape &&
               std::ranges::equal(t.bytes, other->bytes);
    }
    return same;
}

}  // namespace

bool fuzz::take(std::string_view input) {
    const std::string path = as_file(input);
    std::optional<io::Safetensors> file;
    const bool strict = accepted([&] { io::Safetensors::open(path); });
    if (!accepted([&] { file = io::Safetensors::open(path, {.require_checksum = false}); })) {
        FUZZ_REQUIRE(!strict);
        return false;
    }
    FUZZ_REQUIRE(strict == file->has_checksum());
    std::size_t bytes = 0;
    for (const io::TensorView& t : file->tensors()) {
        FUZZ_REQUIRE(file->find(t.name) == &t);
        FUZZ_REQUIRE(bytes_of(t.dtype, t.shape) == std::ssize(t.bytes));
        bytes += t.bytes.size();
        accepted([&] { file->values<float>(t.name); });
        accepted([&] { file->scalar<std::uint64_t>(t.name); });
        accepted([&] { file->characters(t.name); });
        std::vector<double> room(t.bytes.size() / 8);
        accepted([&] { file->read<double>(t.name, std::span(room)); });
    }
    FUZZ_REQUIRE(bytes < input.size());
    // What was read can be written, and is read again. A file of another program may use the two keys.
    io::write_safetensors(other_file(), file->tensors(), file->metadata());
    FUZZ_REQUIRE(same(*file, io::Safetensors::open(other_file())));
    return true;
}
