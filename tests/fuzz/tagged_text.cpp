// Tagged sentences as the program lds_text reads them.
#include "../../programs/shared/tagged_text.hpp"

#include "fuzz.hpp"

std::string fuzz::fresh(Dice& dice) {
    return dice.chance(0.5)
               ? "# text = The "
                 "cat\n1\tThe\tthe\tDET\t_\n1-2\tx\t_\t_\t_\n2\tcat\tcat\tNOUN\t_\n\n1\ta\ta\tDET\n"
               : "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\nGerman JJ I-NP B-MISC\n";
}

std::string fuzz::mutate(const std::string& input, Dice& dice) {
    return mutate_lines(input, dice, input.find('\t') == std::string::npos ? ' ' : '\t');
}

bool fuzz::take(std::string_view input) {
    const std::string path = as_file(input);
    bool any = false;
    for (const char* format : {"conllu", "xpos", "conll"})
        any |= accepted([&] {
            tagged::Tags tags;
            const auto text = tagged::read_tagged(path, format, tags);
            FUZZ_REQUIRE(text.words.size() == text.tags.size() && text.starts.back() == text.words.size());
            for (std::size_t i = 1; i < text.starts.size(); ++i)
                FUZZ_REQUIRE(text.starts[i] > text.starts[i - 1]);
            for (const auto tag : text.tags) FUZZ_REQUIRE(tag >= 0 && tag < std::ssize(tags.names));
            for (const auto& e : tagged::entities(text, text.tags, tags))
                FUZZ_REQUIRE(e.first < e.end && e.end <= text.words.size());
        });
    return any;
}
