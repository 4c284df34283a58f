// Files of sorted counts, as SpilledCounts resumes from them.
#include <cstring>
#include <isogloss/counts/files.hpp>

#include "fuzz.hpp"

using namespace isogloss;
using namespace isogloss::counts;

namespace {

const text::Vocabulary& words() {
    static const auto it = text::Vocabulary::from_words({"a", "b", "c", "<unk>", "<eos>"}, {5, 4, 3, 2, 1});
    return it;
}

}  // namespace

std::string fuzz::fresh(Dice& dice) {
    SortedFile::write(other_file(), {.vocabulary = 5, .lags = std::int64_t(1 + dice.below(3)), .last = 9},
                      [&](Index k, auto&& add) {
                          for (std::int64_t row = 0; row < 5; ++row)
                              for (std::int64_t column = 0; column < (k == 0 ? 1 : 5); ++column)
                                  if (dice.chance(0.3)) add(row, column, std::int64_t(1 + dice.below(300)));
                      });
    return contents(other_file());
}

std::string fuzz::mutate(const std::string& input, Dice& dice) {
    SortedFile::Header h;
    if (input.size() < sizeof h || dice.chance(0.05)) return blind(input);
    std::memcpy(static_cast<void*>(&h), input.data(), sizeof h);
    if (h.lags < 1 || h.lags > 9) return {};
    std::vector<SortedFile::Section> sections(std::size_t(h.lags) + 1);
    const std::size_t head = sizeof h + sections.size() * sizeof(SortedFile::Section);
    if (input.size() < head) return {};
    std::memcpy(static_cast<void*>(sections.data()), input.data() + sizeof h, head - sizeof h);
    std::string pairs = input.substr(head);
    SortedFile::Section& s = dice.pick(sections);
    if (dice.chance(0.5)) {
        const std::size_t before = pairs.size();
        pairs = blind(pairs, pairs.size() + 4);
        std::int64_t& bytes = sections.back().bytes;  // any number by an earlier change, hence unsigned
        bytes = static_cast<std::int64_t>(std::uint64_t(bytes) + pairs.size() - before);
    } else {
        std::int64_t* const fields[] = {&s.begin,      &s.bytes,    &s.pairs, &s.largest,
                                        &h.vocabulary, &h.boundary, &h.first};
        *dice.pick(fields) = static_cast<std::int64_t>(std::strtoull(number(dice).c_str(), nullptr, 10));
    }
    std::size_t at = 0;
    for (SortedFile::Section& section : sections) {
        const std::size_t n = section.bytes < 0 ? 0 : std::min(pairs.size() - at, std::size_t(section.bytes));
        file::Crc64 crc;
        crc.add(std::string_view(pairs).substr(at, n));
        section.checksum = crc.value();
        at += n;
    }
    h.checksum = 0;
    file::Crc64 crc;
    crc.add(std::as_bytes(std::span(&h, 1)));
    crc.add(std::as_bytes(std::span(sections)));
    h.checksum = crc.value();
    std::string out(reinterpret_cast<const char*>(&h), sizeof h);
    out.append(reinterpret_cast<const char*>(sections.data()), head - sizeof h);
    return out + pairs;
}

bool fuzz::take(std::string_view input) {
    const SortedFile file(as_file(input));
    for (Index k = 0; k <= file.header().lags; ++k) {
        std::int64_t before = -1;
        file.read(k, 64, [&](std::int64_t row, std::int64_t column, std::int64_t count) {
            const std::int64_t place = row * file.header().vocabulary + column;
            FUZZ_REQUIRE(place > before && column < file.header().vocabulary && count > 0);
            before = place;
        });
        accepted([&] {
            SortedFile::merge(std::vector(3, file), k, 64, [](auto, auto, auto n) { FUZZ_REQUIRE(n > 0); });
        });
    }
    accepted([&] {
        save_counts(other_file(), std::span(&file, 1), words(), 64);
        accepted([&] { load_counts(other_file()); });
    });
    return true;
}
