/// @file file/system.hpp  The calls of the system that files take: those of POSIX, and the same by those of Windows.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <isogloss/types.hpp>

#ifdef _WIN32
#include <io.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

// Of <windows.h>, whose macros would be those of every program.
extern "C" {
struct _SECURITY_ATTRIBUTES;
__declspec(dllimport) void* __stdcall CreateFileMappingW(void*, struct _SECURITY_ATTRIBUTES*, unsigned long,
                                                         unsigned long, unsigned long, const wchar_t*);
__declspec(dllimport) void* __stdcall MapViewOfFile(void*, unsigned long, unsigned long, unsigned long,
                                                    unsigned long long);
__declspec(dllimport) int __stdcall UnmapViewOfFile(const void*);
__declspec(dllimport) int __stdcall CloseHandle(void*);
__declspec(dllimport) int __stdcall MultiByteToWideChar(unsigned, unsigned long, const char*, int, wchar_t*,
                                                        int);
}
#else
#include <sys/mman.h>

#include <cstdio>
#endif

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace file {

/// The calls of POSIX under their own names. On Windows names of files are UTF-8, bytes are read and written as they
/// are, and there are neither permissions nor links.
namespace detail {

#ifdef _WIN32

using Status = struct ::_stat64;
inline constexpr int close_on_exec = _O_NOINHERIT | _O_BINARY, do_not_wait = 0;

inline std::filesystem::path wide(const char* name) { return std::filesystem::u8path(name); }
inline int stat(const char* path, Status* status) { return ::_wstat64(wide(path).c_str(), status); }
inline int fstat(int file, Status* status) { return ::_fstat64(file, status); }
/// Whether both names are of one file, which exists.
inline bool same_file(const char* a, const char* b) {
    std::error_code unknown;
    return std::filesystem::equivalent(wide(a), wide(b), unknown);
}
inline int open(const char* path, int flags, int mode = 0) {
    const int file = ::_wopen(wide(path).c_str(), flags, mode & (_S_IREAD | _S_IWRITE));
    Status status = {};
    if (file < 0 && errno == EACCES && stat(path, &status) == 0 && S_ISDIR(status.st_mode)) errno = EISDIR;
    return file;
}
inline int close(int file) { return ::_close(file); }
inline int piece(Index bytes) { return static_cast<int>(std::min<Index>(bytes, Index{1} << 30)); }
inline Index read(int file, void* to, Index bytes) { return ::_read(file, to, unsigned(piece(bytes))); }
inline Index pwrite(int file, const void* from, std::size_t bytes, Index at) {
    if (::_lseeki64(file, at, SEEK_SET) < 0) return -1;
    return ::_write(file, from, unsigned(piece(static_cast<Index>(bytes))));
}
inline int fsync(int file) { return ::_commit(file); }
/// Takes no memory, as destructors call it.
inline int unlink(const char* path) {
    wchar_t name[32768];  // as long as a name can be; 65001 is UTF-8
    return ::MultiByteToWideChar(65001, 0, path, -1, name, 32768) > 0 ? ::_wunlink(name) : -1;
}
inline bool writable(const char* path) { return ::_waccess(wide(path).c_str(), W_OK) == 0; }
/// Replaces an older file, which nobody may have open, at once.
inline int rename(const char* from, const char* to) {
    std::error_code error;
    std::filesystem::rename(wide(from), wide(to), error);
    if (error) errno = error.default_error_condition().value();
    return error ? -1 : 0;
}
/// The whole of a file, read only; null with errno if that fails.
inline char* map(int file, Index /*bytes*/) {
    void* const mapping = ::CreateFileMappingW(reinterpret_cast<void*>(::_get_osfhandle(file)), nullptr, 2, 0,
                                               0, nullptr);                         // PAGE_READONLY
    void* const memory = mapping ? ::MapViewOfFile(mapping, 4, 0, 0, 0) : nullptr;  // FILE_MAP_READ
    if (mapping) ::CloseHandle(mapping);
    if (!memory) errno = ENOMEM;
    return static_cast<char*>(memory);
}
inline void unmap(char* memory, Index /*bytes*/) { ::UnmapViewOfFile(memory); }

#else

using Status = struct ::stat;
inline constexpr int close_on_exec = O_CLOEXEC, do_not_wait = O_NONBLOCK;

using ::close;
using ::fstat;
using ::fsync;
using ::open;
using ::pwrite;
using ::read;
using ::rename;
using ::stat;
using ::unlink;
/// Whether both names are of one file, which exists.
inline bool same_file(const char* a, const char* b) {
    Status x = {}, y = {};
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}
inline bool writable(const char* path) { return ::faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0; }
/// The whole of a file, read only; null with errno if that fails.
inline char* map(int file, Index bytes) {
    void* const memory = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
}
inline void unmap(char* memory, Index bytes) { ::munmap(memory, bytes); }

#endif

}  // namespace detail

}}}  // namespace isogloss::file
