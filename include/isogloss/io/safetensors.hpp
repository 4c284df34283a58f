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
#include <isogloss/io/safetensors_header.hpp>
#include <isogloss/io/tensor_view.hpp>
#include <isogloss/sizes.hpp>
#include <isogloss/types.hpp>
#include <isogloss/utf8.hpp>
#include <isogloss/word_index.hpp>
#include <map>
#include <memory>
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
/// byte: lengths, names, shapes, types, metadata and values.
///
/// Errors   DataError, before anything is written: a duplicate name, "__metadata__" as a name, a name
///          or metadata that are not UTF-8, sizes that overflow, one of the two keys above in the
///          metadata, a header above 100 MB. DataError for a source that writes more or fewer bytes than its
///          tensor has; FileError as for OutputFile: no file is then left or changed.
/// Source   The safetensors format as published with its library (0.3 and later).
inline void stream_safetensors(const std::filesystem::path& path, std::vector<TensorSource> tensors,
                               const std::map<std::string, std::string>& metadata = {}) {
    std::stable_sort(tensors.begin(), tensors.end(), [](const TensorSource& a, const TensorSource& b) {
        return info(a.spec.dtype).bits > info(b.spec.dtype).bits;
    });
    std::vector<TensorSpec> specs;
    for (const TensorSource& t : tensors) specs.push_back(t.spec);

    std::string head(8, '\0');
    head += safetensors_opening;
    const std::size_t digits = head.size();
    head += std::string(16, '0') + R"(","isogloss.format":")" + std::string(safetensors_format) + "\"";
    for (const auto& [key, value] : metadata) {
        if (key == "isogloss.checksum" || key == "isogloss.format")
            throw DataError("safetensors: the metadata '", key, "' is written by isogloss; use another key");
        head += "," + detail::json_string(key) + ":" + detail::json_string(value);
    }
    head += "}" + detail::safetensors_entries(specs) + "}";
    head.append((64 - head.size() % 64) % 64, ' ');
    const std::uint64_t length = head.size() - 8;
    if (length > max_safetensors_header)
        throw DataError("safetensors: the header takes ", length, " bytes, but readers accept at most ",
                        max_safetensors_header, "; store long metadata as a tensor of bytes");
    std::memcpy(head.data(), &length, 8);

    file::write_atomically(path.string(), [&](file::OutputFile& out) {
        file::Crc64 crc;
        crc.add(head);
        out.write(head);
        for (const TensorSource& t : tensors) {
            TensorSink sink(out, crc);
            t.write(sink);
            if (const Index needed = *bytes_of(t.spec.dtype, t.spec.shape); sink.written() != needed)
                throw DataError("safetensors: tensor ", in_quotes(t.spec.name), " is ",
                                info(t.spec.dtype).name, " ", dimensions_text(t.spec.shape), " but has ",
                                sink.written(), " bytes, expected ", needed);
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
        return load(path, options, [](file::Reader& in, std::uint64_t, std::uint64_t data) {
            const std::shared_ptr<std::byte[]> held = within_memory<FileError>(
                in.name(), static_cast<Index>(data),
                [data] { return std::make_unique_for_overwrite<std::byte[]>(data); });
            const std::span bytes(held.get(), data);
            in.read(bytes);
            return std::pair<std::shared_ptr<const void>, std::span<const std::byte>>(
                std::shared_ptr<const void>(held, held.get()), bytes);
        });
    }

    /// Maps and verifies a file, which may be larger than memory: all of it is read once, for the checksum,
    /// and pages are read again when accessed. It must not be overwritten in place meanwhile; a file
    /// replaced by rename, as isogloss writes files, stays readable through this object.
    static Safetensors map(const std::filesystem::path& path, SafetensorsOptions options = {}) {
        return load(path, options, [](file::Reader& in, std::uint64_t begin, std::uint64_t data) {
            const auto held = std::make_shared<const file::MappedFile>(in.map());
            return std::pair<std::shared_ptr<const void>, std::span<const std::byte>>(
                held, std::as_bytes(std::span(held->data() + begin, data)));
        });
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

    /// The tensor `name`. Throws FileError unless it has the type T and exactly this shape, before
    /// anything of that shape is allocated.
    template <Storable T>
    const TensorView& require(std::string_view name, const std::vector<Index>& shape) const {
        const TensorView& t = typed<T>(name);
        if (t.shape != shape)
            throw FileError(name_, ": tensor ", in_quotes(name), " has shape ", dimensions_text(t.shape),
                            ", expected ", dimensions_text(shape));
        return t;
    }

    /// Copies the tensor `name` into `out`. Throws FileError unless it has the type T and exactly this shape;
    /// throws DataError if `out` has another number of elements.
    template <Storable T>
    void read(std::string_view name, const std::vector<Index>& shape, std::span<T> out) const {
        const TensorView& t = require<T>(name, shape);
        if (out.size_bytes() != t.bytes.size())
            throw DataError("tensor ", in_quotes(name), ": found room for ", out.size(),
                            " elements, expected shape ", dimensions_text(shape));
        copy(t, out.data());
    }

    /// Copies the one-dimensional tensor `name` into `out`; the same as `read(name, {size of out}, out)`.
    template <Storable T> void read(std::string_view name, std::span<T> out) const {
        read<T>(name, {static_cast<Index>(out.size())}, out);
    }

    /// All elements of the tensor `name`, of any shape, row-major. Throws FileError for another type.
    template <Storable T> std::vector<T> values(std::string_view name) const {
        const TensorView& t = typed<T>(name);
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
        const TensorView& t = typed<std::uint8_t>(name);
        if (t.shape.size() != 1)
            throw FileError(name_, ": tensor ", in_quotes(name), " has shape ", dimensions_text(t.shape),
                            ", expected one dimension of characters");
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
    /// The file with other tensors, kept alive by `owner`. Throws DataError for a duplicate name.
    Safetensors with(std::vector<TensorView> tensors, std::shared_ptr<const void> owner) const {
        Safetensors other;
        other.name_ = name_;
        other.owner_ = std::move(owner);
        other.tensors_ = std::move(tensors);
        other.metadata_ = metadata_;
        other.has_checksum_ = has_checksum_;
        for (Index i = 0; const TensorView& t : other.tensors_)
            if (other.index_.insert(t.name) != i++)
                throw DataError("safetensors: two tensors are named ", in_quotes(t.name),
                                "; names must differ");
        return other;
    }
    /// Whether the file has an isogloss checksum, which was then correct.
    bool has_checksum() const { return has_checksum_; }
    /// Name of the file.
    const std::string& name() const { return name_; }

private:
    Safetensors() = default;

    // get(in, begin, bytes): the bytes after the header, which begin at `begin`, and their owner.
    template <class Get>
    static Safetensors load(const std::filesystem::path& path, SafetensorsOptions options, Get&& get) {
        file::Reader in(file::open_regular(path.string()));
        const auto size = static_cast<std::uint64_t>(in.remaining());
        std::uint64_t length = 0;
        if (size >= 8) in.read(std::as_writable_bytes(std::span(&length, 1)));
        if (size < 8 || length > size - 8 || length > max_safetensors_header)
            in.refuse("found ", size, " bytes and a header of ", length,
                      ", expected the header within them and at most ", max_safetensors_header,
                      "; the file is truncated or not a safetensors file");
        std::string json(length, '\0');
        in.read(std::as_writable_bytes(std::span(json)));
        const std::uint64_t data = size - 8 - length;
        auto header =
            detail::read_safetensors_header(json, data, [&in](const std::string& what) { in.refuse(what); });

        Safetensors file;
        file.name_ = in.name();
        const auto [owner, bytes] = get(in, 8 + length, data);
        file.owner_ = owner;
        file.verify(in, header.metadata, json, bytes, options);

        header.metadata.erase("isogloss.format");
        header.metadata.erase("isogloss.checksum");
        file.metadata_ = std::move(header.metadata);
        file.tensors_.reserve(header.entries.size());
        for (auto& e : header.entries)
            file.tensors_.push_back({std::move(e.tensor.name), e.tensor.dtype, std::move(e.tensor.shape),
                                     bytes.subspan(e.begin, e.end - e.begin)});
        for (const TensorView& t : file.tensors_) file.index_.insert(t.name);
        return file;
    }

    void verify(const file::Reader& in, const std::map<std::string, std::string>& metadata,
                std::string_view json, std::span<const std::byte> data, SafetensorsOptions options) {
        const auto format = metadata.find("isogloss.format"), sum = metadata.find("isogloss.checksum");
        if (format == metadata.end() && sum == metadata.end()) {
            if (options.require_checksum)
                in.refuse(
                    "found no checksum by isogloss; the file is foreign or damaged. Read files of other "
                    "programs with SafetensorsOptions{.require_checksum = false}");
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
                "its checksum is wrong: the file is damaged, or another program rewrote it and should drop "
                "the "
                "metadata 'isogloss.format' and 'isogloss.checksum'; restore it from a copy");
        // After the checksum, so that a damaged file is not reported as a newer one.
        if (format->second != safetensors_format)
            in.refuse("format ", in_quotes(format->second), ", but this version of isogloss reads format '",
                      safetensors_format, "'; use a newer version");
        has_checksum_ = true;
    }

    template <Storable T> const TensorView& typed(std::string_view name) const {
        const TensorView& t = at(name);
        if (t.dtype != dtype_of<T>())
            throw FileError(name_, ": tensor ", in_quotes(name), " has type ", info(t.dtype).name,
                            ", expected ", info(dtype_of<T>()).name);
        return t;
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
