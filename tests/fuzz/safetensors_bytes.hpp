// Safetensors files taken apart, changed in their parts, and put together again with a right checksum.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz.hpp"

namespace fuzz {

struct StoredTensor {
    std::string name, dtype;
    std::vector<std::uint64_t> shape;
    std::string bytes;
};

struct StoredFile {
    bool checksum = false;
    std::map<std::string, std::string> metadata;
    std::vector<StoredTensor> tensors;

    StoredTensor* find(std::string_view name) {
        for (auto& t : tensors)
            if (t.name == name) return &t;
        return nullptr;
    }
};

// Takes a file apart, as far as it has the form of one.
std::optional<StoredFile> parse(std::string_view bytes);
// The bytes of a file. `lie`: one number of the header is replaced.
std::string put_together(const StoredFile& file, Dice& dice, bool lie);

// One element of a tensor becomes a number that programs trip over, or its bytes are changed blindly.
void change_element(StoredTensor& t, Dice& dice);
// A shape, a type, a name, the order, the metadata.
void change_structure(StoredFile& file, Dice& dice);
// A text in a tensor of bytes becomes another one.
void change_text(StoredFile& file, std::string_view name,
                 const std::function<std::string(const std::string&)>& change);

// A changed file. `own(file, dice)` makes the changes that only the target can think of.
std::string mutate_safetensors(const std::string& input, Dice& dice,
                               const std::function<void(StoredFile&, Dice&)>& own);

}  // namespace fuzz
