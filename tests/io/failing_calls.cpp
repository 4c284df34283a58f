#include "failing_calls.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>

// These stand in the program itself, so that the linker takes them, also for calls from shared libraries, and
// what is under test needs no hooks.

namespace {

// The function of the C library.
template <class F> F* real(F*, const char* name) { return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name)); }

// Whether this call is to fail; errno is set then.
bool fails() {
    using namespace failing;
    if (!active || plan.after < 0) return false;
    const int number = calls++;
    if (number != plan.after && !(plan.for_ever && number > plan.after)) return false;
    failed = true;
    if (plan.error != 0) errno = plan.error;
    return true;
}

// Of `bytes` those that a call reads or writes that is cut short.
std::size_t cut(std::size_t bytes) { return std::max<std::size_t>(1, bytes / 2); }

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
    static const auto next = real(&::open, "open");
    if (fails() && failing::plan.error != 0) return -1;
    mode_t mode = 0;
    if ((flags & O_CREAT) != 0) {
        std::va_list rest;
        va_start(rest, flags);
        mode = va_arg(rest, mode_t);
        va_end(rest);
    }
    return next(path, flags, mode);
}
ssize_t read(int file, void* to, size_t bytes) {
    static const auto next = real(&::read, "read");
    if (!fails()) return next(file, to, bytes);
    return failing::plan.error != 0 ? -1 : next(file, to, cut(bytes));
}
ssize_t write(int file, const void* from, size_t bytes) {
    static const auto next = real(&::write, "write");
    if (!fails()) return next(file, from, bytes);
    return failing::plan.error != 0 ? -1 : next(file, from, cut(bytes));
}
ssize_t pwrite(int file, const void* from, size_t bytes, off_t at) {
    static const auto next = real(&::pwrite, "pwrite");
    if (!fails()) return next(file, from, bytes, at);
    return failing::plan.error != 0 ? -1 : next(file, from, cut(bytes), at);
}
int fsync(int file) {
    static const auto next = real(&::fsync, "fsync");
    if (fails() && failing::plan.error != 0) return -1;
    return failing::active ? 0 : next(file);  // thousands of them, and no power that could fail
}
int close(int file) {
    static const auto next = real(&::close, "close");
    const bool fail = fails() && failing::plan.error != 0;
    const int result = next(file);  // a close that fails has closed all the same
    if (fail) errno = failing::plan.error;
    return fail ? -1 : result;
}
int rename(const char* from, const char* to) noexcept {
    static const auto next = real(&::rename, "rename");
    return fails() && failing::plan.error != 0 ? -1 : next(from, to);
}
int flock(int file, int how) noexcept {
    static const auto next = real(&::flock, "flock");
    return fails() && failing::plan.error != 0 ? -1 : next(file, how);
}
int fchmod(int file, mode_t mode) noexcept {
    static const auto next = real(&::fchmod, "fchmod");
    return fails() && failing::plan.error != 0 ? -1 : next(file, mode);
}
int fchown(int file, uid_t owner, gid_t group) noexcept {
    static const auto next = real(&::fchown, "fchown");
    return fails() && failing::plan.error != 0 ? -1 : next(file, owner, group);
}
void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
    static const auto next = real(&::mmap, "mmap");
    // of files alone: memory that the library is refused is another story; and no signal interrupts it
    if (file >= 0 && failing::plan.error != EINTR && fails() && failing::plan.error != 0) return MAP_FAILED;
    return next(at, bytes, protection, flags, file, offset);
}

}  // extern "C"
