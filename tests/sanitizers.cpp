// What the leak checker is to pass over: clang's OpenMP runtime drops some of its own memory when the number
// of threads changes from one region to the next.
extern "C" const char*
__lsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier): its name for it
extern "C" const char* __lsan_default_suppressions() { return "leak:libomp.so\n"; }
