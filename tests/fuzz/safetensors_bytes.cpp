#include "safetensors_bytes.hpp"

#include <algorithm>
#include <cstring>
#include <isogloss/io/safetensors.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace fuzz {
namespace {

std::size_t width_of(const std::string& dtype) {
    const auto known = isogloss::io::dtype_named(dtype);
    return known ? static_cast<std::size_t>(isogloss::io::info(*known).bytes) : 1;
}

std::string quoted(const std::string& characters) {
    return nlohmann::json(characters).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Puts the length of the header and, where there is a place for it, the checksum into a file.
void repair(std::string& bytes, std::uint64_t length) {
    if (bytes.size() < 8) return;
    std::memcpy(bytes.data(), &length, 8);
    const std::size_t at = 8 + isogloss::io::safetensors_opening.size();
    if (bytes.size() < at + 16 || bytes.compare(8, at - 8, isogloss::io::safetensors_opening) != 0) return;
    bytes.replace(at, 16, std::string(16, '0'));
    isogloss::file::Crc64 crc;
    crc.add(bytes);
    bytes.replace(at, 16, isogloss::file::hex16(crc.value()));
}

// A list of whole numbers; others become 0 (a conversion of 1e39 would be undefined).
std::vector<std::uint64_t> wholes(const nlohmann::ordered_json& list) {
    std::vector<std::uint64_t> numbers;
    for (const auto& n : list) numbers.push_back(n.is_number_unsigned() ? n.get<std::uint64_t>() : 0);
    return numbers;
}

}  // namespace

std::optional<StoredFile> parse(std::string_view bytes) {
    std::uint64_t length = 0;
    if (bytes.size() < 8) return std::nullopt;
    std::memcpy(&length, bytes.data(), 8);
    if (length > bytes.size() - 8) return std::nullopt;
    const auto json = nlohmann::ordered_json::parse(bytes.substr(8, length), nullptr, false);
    const auto data = bytes.substr(8 + length);
    if (!json.is_object()) return std::nullopt;
    StoredFile file;
    try {
        for (const auto& [key, value] : json.items()) {
            if (key == "__metadata__") {
                file.metadata = value.get<std::map<std::string, std::string>>();
                file.metadata.erase("isogloss.format");
                file.checksum = file.metadata.erase("isogloss.checksum") > 0;
                continue;
            }
            const auto offsets = wholes(value.at("data_offsets"));
            const auto begin = std::min<std::uint64_t>(offsets.at(0), data.size());
            const auto end = std::clamp<std::uint64_t>(offsets.at(1), begin, data.size());
            file.tensors.push_back({key, value.at("dtype").get<std::string>(), wholes(value.at("shape")),
                                    std::string(data.substr(begin, end - begin))});
        }
    } catch (const nlohmann::json::exception&) {
        return std::nullopt;
    } catch (const std::out_of_range&) {
        return std::nullopt;
    }
    return file;
}

std::string put_together(const StoredFile& file, Dice& dice, bool lie) {
    std::string json = file.checksum ? std::string(isogloss::io::safetensors_opening) + std::string(16, '0') +
                                           R"(","isogloss.format":"1")"
                                     : R"({"__metadata__":{)";
    bool first = !file.checksum;
    for (const auto& [key, value] : file.metadata)
        json += std::string(std::exchange(first, false) ? "" : ",") + quoted(key) + ":" + quoted(value);
    json += "}";
    const std::size_t liar = lie ? dice.below(file.tensors.size()) : file.tensors.size(),
                      place = dice.below(3);
    std::size_t at = 0;
    std::string data;
    for (std::size_t i = 0; i < file.tensors.size(); ++i) {
        const StoredTensor& t = file.tensors[i];
        std::string numbers[3] = {"", std::to_string(at), std::to_string(at + t.bytes.size())};
        for (const auto n : t.shape) numbers[0] += (numbers[0].empty() ? "" : ",") + std::to_string(n);
        if (i == liar) numbers[place] = number(dice);
        json += "," + quoted(t.name) + R"(:{"dtype":)" + quoted(t.dtype) + R"(,"shape":[)" + numbers[0] +
                R"(],"data_offsets":[)" + numbers[1] + "," + numbers[2] + "]}";
        at += t.bytes.size();
        data += t.bytes;
    }
    json += "}";
    json.append((64 - (8 + json.size()) % 64) % 64, ' ');
    std::string bytes = std::string(8, '\0') + json + data;
    repair(bytes, json.size());
    return bytes;
}

void change_element(StoredTensor& t, Dice& dice) {
    const std::size_t width = width_of(t.dtype), count = t.bytes.size() / width;
    if (count == 0) return;
    std::string element(width, '\0');
    const bool real = t.dtype == "F32" || t.dtype == "F64";
    const double reals[] = {0,
                            -0.0,
                            1,
                            -1,
                            1e-300,
                            1e300,
                            3e38,
                            1e-40,
                            std::numeric_limits<double>::quiet_NaN(),
                            std::numeric_limits<double>::infinity(),
                            -std::numeric_limits<double>::infinity(),
                            1e10};
    const std::uint64_t wholes[] = {0,        1,          2,          3,          ~0u,       ~0ull,
                                    1u << 31, 0x7fffffff, 1ull << 62, ~0ull >> 1, 1ull << 63};
    const std::size_t at = width * dice.below(count);
    if (dice.chance(0.4)) {
        for (auto& c : element) c = static_cast<char>(dice.below(256));
        if (!real && dice.chance(0.7)) std::fill(element.begin() + 1, element.end(), '\0');
    } else if (dice.chance(0.3)) {
        element = t.bytes.substr(width * dice.below(count), width);
    } else if (t.dtype == "F32") {
        const double wide = dice.pick(reals);
        const auto x = wide == 1e300 ? 1e38f : static_cast<float>(wide);
        std::memcpy(element.data(), &x, width);
    } else if (t.dtype == "F64") {
        std::memcpy(element.data(), &dice.pick(reals), width);
    } else {
        std::memcpy(element.data(), &dice.pick(wholes), std::min<std::size_t>(width, 8));
    }
    t.bytes.replace(at, width, element);
}

// Bytes as many as type and shape ask for, where that is not many.
static void fit_bytes(StoredTensor& t) {
    std::uint64_t n = width_of(t.dtype);
    for (const auto k : t.shape) n = k > 4096 || n > 4096 ? 4097 : n * k;
    if (n <= 4096) t.bytes.resize(n, '\1');
}

void change_structure(StoredFile& file, Dice& dice) {
    if (file.tensors.empty()) return;
    StoredTensor &t = dice.pick(file.tensors), &other = dice.pick(file.tensors);
    const auto place = [&] {
        return file.tensors.begin() + static_cast<std::ptrdiff_t>(dice.below(file.tensors.size()));
    };
    switch (dice.below(9)) {
        case 0:
            if (t.shape.empty() || dice.chance(0.2)) t.shape.push_back(1);
            else if (dice.chance(0.2)) t.shape.pop_back();
            else if (auto& n = dice.pick(t.shape); dice.chance(0.1))
                n = std::strtoull(number(dice).c_str(), nullptr, 10);
            else n = n + 2 - dice.below(5);
            if (dice.chance(0.8)) fit_bytes(t);
            break;
        case 1: {
            static const std::string types[] = {
                "BOOL", "U8",  "I8", "U16",     "I16",     "F16",     "BF16",    "U32", "I32", "F32", "U64",
                "I64",  "F64", "F4", "F6_E2M3", "F8_E4M3", "F8_E5M2", "F8_E8M0", "C64", "f32", ""};
            t.dtype = dice.pick(types);
            if (dice.chance(0.8)) fit_bytes(t);
            break;
        }
        case 2:
            std::swap(t.bytes, other.bytes);
            break;
        case 3:
            std::swap(t.name, other.name);
            break;
        case 4:
            t.name = dice.chance(0.5) ? other.name : blind(t.name, t.name.size() + 8);
            break;
        case 5:
            file.tensors.erase(place());
            break;
        case 6: {
            StoredTensor copy = t;
            copy.name += dice.chance(0.8) ? "2" : "";
            file.tensors.insert(place(), std::move(copy));
            break;
        }
        case 7:
            std::swap(t, other);
            break;
        default:
            if (file.metadata.empty() || dice.chance(0.3)) file.metadata[blind("key")] = blind("value");
            else if (auto entry = std::next(file.metadata.begin(),
                                            static_cast<std::ptrdiff_t>(dice.below(file.metadata.size())));
                     dice.chance(0.3))
                file.metadata.erase(entry);
            else entry->second = blind(entry->second, entry->second.size() + 8);
    }
}

void change_text(StoredFile& file, std::string_view name,
                 const std::function<std::string(const std::string&)>& change) {
    if (StoredTensor* t = file.find(name)) {
        t->bytes = change(t->bytes);
        t->shape = {t->bytes.size()};
    }
}

std::string mutate_safetensors(const std::string& input, Dice& dice,
                               const std::function<void(StoredFile&, Dice&)>& own) {
    auto file = parse(input);
    if (!file) return "";
    if (dice.chance(0.1)) {  // the header as characters
        std::uint64_t length;
        std::memcpy(&length, input.data(), 8);
        std::string json = dice.chance(0.5)
                               ? blind(input.substr(8, length), length + 64)
                               : mutate_lines(input.substr(8, length), dice, dice.chance(0.5) ? ',' : '"');
        std::string bytes = std::string(8, '\0') + json + input.substr(8 + length);
        repair(bytes, json.size());
        return bytes;
    }
    for (std::size_t n = 1 + dice.below(4); n-- > 0;) {
        if (dice.chance(0.4)) own(*file, dice);
        else if (dice.chance(0.15)) change_structure(*file, dice);
        else if (!file->tensors.empty()) change_element(dice.pick(file->tensors), dice);
    }
    if (dice.chance(0.03)) file->checksum = !file->checksum;
    return put_together(*file, dice, !file->tensors.empty() && dice.chance(0.05));
}

}  // namespace fuzz
