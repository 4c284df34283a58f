# Programs for 64-bit ARM on another machine, by Debian's cross compiler, run there by qemu: see docs/building.md.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
# The system's C++ library lies with the compiler, OpenBLAS where the package of the other architecture puts it. That one brings
# another C library, too: with the loader of the compiler's, pthread_create() would never return.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=/usr/aarch64-linux-gnu/lib)
# Headers alone, but Debian puts what finds them into the folder of the machine that the packages are installed for.
foreach(package IN ITEMS xtensor xtensor-blas xsimd)
    set(${package}_DIR /usr/lib/${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu/cmake/${package} CACHE PATH "Where ${package} is found")
endforeach()
