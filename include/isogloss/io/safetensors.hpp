/// @file io/safetensors.hpp  Named tensors in one file, written atomically and verified when read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <isogloss/error.hpp>
#include <isogloss/file/checksum.hpp>
#include <isogloss/file/input_file.hpp>
#include <isogloss/file/output_file.hpp>
#include <isogloss/file/reader.hpp>
#include <isogloss/io/safetensors_json.hpp>
#include <isogloss/io/tensor_view.hpp>
#include <isogloss/sizes.hpp>
#include <isogloss/types.hpp>
#include <isogloss/utf8.hpp>
#include <isogloss/word_index.hpp>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace io {

/// Format version that isogloss writes, in the metadata "isogloss.format".
inline constexpr std::string_view safetensors_format = "1";

/// How the header of every file written here begins; 16 hexadecimal digits of checksum follow.
inline constexpr std::string_view safetensors_opening = R"({"__metadata__":{"isogloss.checksum":")";

/// Maximum header length, in bytes, for writing and reading; the limit of the format's own library.
inline constexpr std::uint64_t max_safetensors_header = 100'000'000;

namespace detail {

/// Reads a header and returns what is wrong with it, given the number of bytes that follow it; empty if nothing is: one
/// JSON object with the allowed keys, each once; known scalar types; at most `max_dimensions` sizes, whose product does
/// not overflow; offsets that match the sizes, are contiguous and without overlap, and end where the file ends.
inline std::string read_safetensors_header(std::string_view json, std::uint64_t bytes_after,
                                           SafetensorsHeader& header) {
    // The parser takes a NUL for the end of the text and would ignore what follows it.
    if (!json.starts_with('{') || json.find('\0') != json.npos)
        return "the header is not a JSON object; this is not a safetensors file";
    if (std::string problem = read_json(json, header); !problem.empty()) return problem;
    std::ranges::stable_sort(header.entries, {}, [](const auto& e) { return std::pair(e.begin, e.end); });
    std::uint64_t end = 0;
    for (const auto& e : header.entries) {
        const auto needed = bytes_of(e.tensor.dtype, e.tensor.shape);
        if (!needed || e.begin != end || e.end < e.begin || e.end - e.begin != std::uint64_t(*needed))
            return message("tensor ", in_quotes(e.tensor.name), ", ", info(e.tensor.dtype).name, " ",
                           dimensions_text(e.tensor.shape), ": found data_offsets [", e.begin, ", ", e.end,
                           "], expected to begin at ", end, " and to hold ",
                           needed ? std::to_string(*needed) + " bytes" : "a countable number of bytes");
        end = e.end;
    }
    if (end == bytes_after) return {};
    return message("the tensors take ", end, " bytes, but ", bytes_after,
                   " follow the header; the file is truncated or too long");
}

/// The JSON of the tensors, to follow the metadata: `,"name":{…}` for each, at consecutive offsets.
/// Throws DataError for a name that is duplicate, reserved or not UTF-8, and for sizes that overflow.
inline std::string safetensors_entries(std::span<const TensorSpec> tensors) {
    std::string json;
    std::set<std::string_view> names{"__metadata__"};
    Index begin = 0;
    for (const TensorSpec& t : tensors) {
        const auto needed = bytes_of(t.dtype, t.shape);
        if (!needed || *needed > std::numeric_limits<Index>::max() - begin || !names.insert(t.name).second)
            throw DataError("safetensors: the name of tensor ", in_quotes(t.name), " ",
                            dimensions_text(t.shape),
                            " appears twice or is reserved, or its bytes are too many to count");
        std::string sizes;
        for (const Index size : t.shape) sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
        json += message(",", json_string(t.name), R"(:{"dtype":")", info(t.dtype).name, R"(","shape":[)",
                        sizes, R"(],"data_offsets":[)", begin, ",", begin + *needed, "]}");
        begin += *needed;
    }
    return json;
}

}  // namespace detail

/// Receives the bytes of one tensor, in pieces, from first to last.
class TensorSink {
public:
    TensorSink(file::OutputFile& out, file::Crc64& crc) : out_(&out), crc_(&crc) {}
    /// Appends bytes.
    void write(std::span<const std::byte> bytes) {
        crc_->add(bytes);
        out_->write(bytes);
        written_ += std::ssize(bytes);
    }
    /// Bytes written so far.
    Index written() const { return written_; }

private:
    file::OutputFile* out_;
    file::Crc64* crc_;
    Index written_ = 0;
};

/// A tensor whose bytes are generated while they are written, so that it may be larger than memory.
struct TensorSource {
    TensorSpec spec;                         ///< name, scalar type, sizes
    std::function<void(TensorSink&)> write;  ///< writes bytes_of(spec) bytes, once
};

/// Writes tensors and metadata to `path` in the safetensors format, by OutputFile: after a crash the file is
/// either the old or the new one, complete.
///
///     bytes 0 … 7   length n of the header, little-endian; 8 + n is a multiple of 64
///     n bytes       JSON, then spaces: {"__metadata__": {key: value …},
///                                       name: {"dtype": …, "shape": [ … ], "data_offsets": [begin, end]} …}
///     the rest      the bytes of the tensors, concatenated
///
/// Tensors are ordered by descending element size, and among equals as given, so that each begins at
/// a multiple of its element size. The keys "isogloss.format" and "isogloss.checksum" are added to the metadata:
/// the latter is the CRC-64 of the complete file with the checksum's own 16 digits read as '0'. It covers every
/// byte: lengths, names, shapes, types, metadata and values. Values that `metadata` has for these keys are left out.
///
/// Errors   DataError, before anything is written: a duplicate name, "__metadata__" as a name, a name
///          or metadata that are not UTF-8, sizes that overflow, a header above 100 MB. DataError for a source that writes more or fewer bytes than its
///          tensor has; FileError as for OutputFile: no file is then left or changed.
/// Source   The safetensors format as published with its library (0.3 and later).
inline void stream_safetensors(const std::filesystem::path& path, std::vector<TensorSource> tensors,
                               const std::map<std::string, std::string>& metadata = {}) {
    std::stable_sort(tensors.begin(), tensors.end(), [](const TensorSource& a, const TensorSource& b) {
        return info(a.spec.dtype).bytes > info(b.spec.dtype).bytes;
    });
    std::vector<TensorSpec> specs;
    for (const TensorSource& t : tensors) specs.push_back(t.spec);

    std::string head(8, '\0');
    head += safetensors_opening;
    const std::size_t digits = head.size();
    head += std::string(16, '0') + R"(","isogloss.format":")" + std::string(safetensors_format) + "\"";
    for (const auto& [key, value] : metadata)
        if (key != "isogloss.checksum" && key != "isogloss.format")
            head += "," + detail::json_string(key) + ":" + detail::json_string(value);
    head += "}" + detail::safetensors_entries(specs) + "}";
    head.append((64 - head.size() % 64) % 64, ' ');
    const std::uint64_t length = head.size() - 8;
    require<DataError>("safetensors", "bytes of the header", length, 0u, max_safetensors_header);
    std::memcpy(head.data(), &length, 8);

    file::write_atomically(path.string(), [&](file::OutputFile& out) {
        file::Crc64 crc;
        crc.add(head);
        out.write(head);
        for (const TensorSource& t : tensors) {
            TensorSink sink(out, crc);
            t.write(sink);
            const Index needed = *bytes_of(t.spec.dtype, t.spec.shape);
            require<DataError>("safetensors", "bytes of " + in_quotes(t.spec.name), sink.written(), needed,
                               needed);
        }
        out.write_at(static_cast<Index>(digits), file::hex16(crc.value()));
    });
}

/// The same for tensors in memory.
inline void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                              const std::map<std::string, std::string>& metadata = {}) {
    std::vector<TensorSource> sources;
    for (const TensorView& t : tensors)
        sources.push_back(
            {{t.name, t.dtype, t.shape}, [bytes = t.bytes](TensorSink& sink) { sink.write(bytes); }});
    stream_safetensors(path, std::move(sources), metadata);
}

/// Options of Safetensors::open and Safetensors::map.
struct SafetensorsOptions {
    /// Refuse a file without an isogloss checksum, as written by other programs. Default true.
    bool require_checksum = true;
};

/// A safetensors file in memory, read and verified as a whole before any of it is accessible.
///
///     const auto file = Safetensors::open("model.safetensors");
///     file.read<float>("E", {V, n}, table);      // into a std::span<float>; exact type and shape
///     const auto epoch = file.scalar<std::int64_t>("epoch");
///
/// A checksum is always verified if present. A file whose metadata names isogloss but that has no checksum,
/// or has it in another place, is refused with either option: it was damaged, or rewritten by a program
/// that copied the metadata.
///
/// Errors   FileError, naming the file and the problem: missing, not safetensors, truncated, too long, damaged,
///          without checksum, of a newer format, a tensor that is missing or of another type or shape.
class Safetensors {
public:
    /// Reads and verifies a file.
    static Safetensors open(const std::filesystem::path& path, SafetensorsOptions options = {}) {
        return load(path, options, false);
    }

    /// Maps and verifies a file, which may be larger than memory: all of it is read once, for the checksum,
    /// and pages are read again when accessed. It must not be overwritten in place meanwhile; a file
    /// replaced by rename, as isogloss writes files, stays readable through this object.
    static Safetensors map(const std::filesystem::path& path, SafetensorsOptions options = {}) {
        return load(path, options, true);
    }

    /// The tensor of this name, or null. The view is valid as long as this object, even if it is moved.
    const TensorView* find(std::string_view name) const {
        const Token i = index_.find(name);
        return i < 0 ? nullptr : &tensors_[i];
    }

    /// The tensor of this name. Throws FileError if there is none.
    const TensorView& at(std::string_view name) const {
        if (const TensorView* t = find(name)) return *t;
        std::string known;
        for (const TensorView& t : std::span(tensors_).first(std::min<std::size_t>(tensors_.size(), 20)))
            known += " " + in_quotes(t.name);
        throw FileError(name_, ": holds no tensor ", in_quotes(name), "; the first of its ", tensors_.size(),
                        " are", known);
    }

    /// The tensor `name`. Throws FileError unless it has this type and, if one is given, exactly this shape, before
    /// anything of that shape is allocated.
    const TensorView& expect(std::string_view name, DType dtype,
                             const std::optional<std::vector<Index>>& shape = {}) const {
        const TensorView& t = at(name);
        if (t.dtype != dtype || (shape && t.shape != *shape))
            throw FileError(name_, ": tensor ", in_quotes(name), " is ", info(t.dtype).name, " ",
                            dimensions_text(t.shape), ", expected ", info(dtype).name,
                            shape ? " " + dimensions_text(*shape) : std::string());
        return t;
    }

    /// Copies the tensor `name` into `out`. Throws FileError unless it has the type T and exactly this shape;
    /// throws DataError if `out` has another number of elements.
    template <Storable T>
    void read(std::string_view name, const std::vector<Index>& shape, std::span<T> out) const {
        const TensorView& t = expect(name, dtype_of<T>(), shape);
        const auto n = t.bytes.size() / sizeof(T);
        require<DataError>("tensor " + in_quotes(name), "room for elements", out.size(), n, n);
        copy(t, out.data());
    }

    /// Copies the one-dimensional tensor `name` into `out`; the same as `read(name, {size of out}, out)`.
    template <Storable T> void read(std::string_view name, std::span<T> out) const {
        read<T>(name, {static_cast<Index>(out.size())}, out);
    }

    /// All elements of the tensor `name`, of any shape, row-major. Throws FileError for another type.
    template <Storable T> std::vector<T> values(std::string_view name) const {
        const TensorView& t = expect(name, dtype_of<T>());
        std::vector<T> out(t.bytes.size() / sizeof(T));
        copy(t, out.data());
        return out;
    }

    /// The scalar `name`, shape []. Throws FileError for another type or shape.
    template <Storable T> T scalar(std::string_view name) const {
        T value;
        read<T>(name, {}, std::span(&value, 1));
        return value;
    }

    /// The characters of the tensor `name`, U8 and one-dimensional, as stored by text_view. Valid as
    /// long as this object. Throws FileError for another type or shape.
    std::string_view characters(std::string_view name) const {
        const TensorView& t = expect(name, DType::u8, {{std::ssize(at(name).bytes)}});
        return {reinterpret_cast<const char*>(t.bytes.data()), t.bytes.size()};
    }

    /// All tensors, in file order.
    std::span<const TensorView> tensors() const { return tensors_; }
    /// The names of all tensors, in file order.
    const std::vector<std::string>& names() const { return index_.words(); }
    /// The metadata without isogloss's format and checksum: that passed to write_safetensors.
    const std::map<std::string, std::string>& metadata() const { return metadata_; }
    /// Owner of the bytes of the tensors, for views that outlive this object.
    const std::shared_ptr<const void>& owner() const { return owner_; }
    /// The file with other tensors, kept alive by `owner`. Throws FileError for a duplicate name.
    Safetensors with(std::vector<TensorView> tensors, std::shared_ptr<const void> owner) const {
        Safetensors other;
        other.name_ = name_;
        other.owner_ = std::move(owner);
        other.tensors_ = std::move(tensors);
        other.metadata_ = metadata_;
        other.has_checksum_ = has_checksum_;
        other.number_tensors();
        return other;
    }
    /// Whether the file has an isogloss checksum, which was then correct.
    bool has_checksum() const { return has_checksum_; }
    /// Name of the file.
    const std::string& name() const { return name_; }

private:
    Safetensors() = default;

    static Safetensors load(const std::filesystem::path& path, SafetensorsOptions options, bool mapped) {
        file::Reader in(file::open_regular(path.string()));
        const auto size = static_cast<std::uint64_t>(in.remaining());
        std::uint64_t length = 0;
        if (size >= 8) in.read(std::as_writable_bytes(std::span(&length, 1)));
        if (size < 8 || length > size - 8 || length > max_safetensors_header)
            in.refuse("found ", size, " bytes and a header of ", length, ", expected at most ",
                      max_safetensors_header, " of them; the file is truncated or not a safetensors file");
        std::string json(length, '\0');
        in.read(std::as_writable_bytes(std::span(json)));
        const auto data = static_cast<std::size_t>(size - 8 - length);
        detail::SafetensorsHeader header;
        if (const auto problem = detail::read_safetensors_header(json, data, header); !problem.empty())
            in.refuse(problem);

        Safetensors file;
        file.name_ = in.name();
        std::span<const std::byte> bytes;
        if (mapped) {
            const auto held = std::make_shared<const file::MappedFile>(in.map());
            bytes = std::as_bytes(std::span(held->data() + 8 + length, data));
            file.owner_ = held;
        } else {
            const std::shared_ptr<std::byte[]> held = within_memory<FileError>(
                in.name(), static_cast<Index>(data),
                [data] { return std::make_unique_for_overwrite<std::byte[]>(data); });
            in.read({held.get(), data});
            bytes = {held.get(), data};
            file.owner_ = std::shared_ptr<const void>(held, held.get());
        }
        file.verify(in, header.metadata, json, bytes, options);

        header.metadata.erase("isogloss.format");
        header.metadata.erase("isogloss.checksum");
        file.metadata_ = std::move(header.metadata);
        file.tensors_.reserve(header.entries.size());
        for (auto& e : header.entries)
            file.tensors_.push_back({std::move(e.tensor.name), e.tensor.dtype, std::move(e.tensor.shape),
                                     bytes.subspan(e.begin, e.end - e.begin)});
        file.number_tensors();
        return file;
    }

    void number_tensors() {
        for (Index i = 0; const TensorView& t : tensors_)
            if (index_.insert(t.name) != i++)
                throw FileError(name_, ": the tensor ", in_quotes(t.name), " appears twice");
    }

    void verify(const file::Reader& in, const std::map<std::string, std::string>& metadata,
                std::string_view json, std::span<const std::byte> data, SafetensorsOptions options) {
        const auto format = metadata.find("isogloss.format"), sum = metadata.find("isogloss.checksum");
        if (format == metadata.end() && sum == metadata.end()) {
            if (options.require_checksum)
                in.refuse(
                    "found no checksum by isogloss; read files of other programs with "
                    "SafetensorsOptions{.require_checksum = false}");
            return;
        }
        const std::uint64_t length = json.size();
        const bool placed =
            json.starts_with(safetensors_opening) && json.size() > safetensors_opening.size() + 16;
        std::string zeroed(json);
        if (placed) zeroed.replace(safetensors_opening.size(), 16, 16, '0');
        file::Crc64 crc;
        crc.add(std::as_bytes(std::span(&length, 1)));
        crc.add(zeroed);
        crc.add(data);
        if (!placed || format == metadata.end() || sum == metadata.end() ||
            file::hex16(crc.value()) != sum->second)
            in.refuse(
                "its checksum is wrong: the file is damaged, or another program rewrote it and kept our "
                "metadata");
        // After the checksum, so that a damaged file is not reported as a newer one.
        if (format->second != safetensors_format)
            in.refuse("format ", in_quotes(format->second), " needs a newer version of isogloss");
        has_checksum_ = true;
    }

    static void copy(const TensorView& t, void* out) {
        if (!t.bytes.empty()) std::memcpy(out, t.bytes.data(), t.bytes.size());
    }

    std::string name_;
    std::shared_ptr<const void> owner_;
    std::vector<TensorView> tensors_;
    WordIndex index_;  // of their names
    std::map<std::string, std::string> metadata_;
    bool has_checksum_ = false;
};

}}}  // namespace isogloss::io
