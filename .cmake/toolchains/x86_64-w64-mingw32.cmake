# Programs for Windows on another machine, by Debian's mingw-w64, run there by wine: see docs/building.md.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_CROSSCOMPILING_EMULATOR wine)
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libgomp.a OUTPUT_VARIABLE gomp OUTPUT_STRIP_TRAILING_WHITESPACE)
set(OpenMP_gomp_LIBRARY ${gomp} CACHE FILEPATH "The static one: wine does not find the other")
# Packages of headers alone. They lie beside the headers of this machine's C library, which are not for Windows: a folder
# has links to theirs and copies of the files by which CMake finds them.
set(headers ${CMAKE_BINARY_DIR}/headers)
foreach(name IN ITEMS xtensor xtensor.hpp xtl xsimd nlohmann catch2)
    if(EXISTS /usr/include/${name} AND NOT EXISTS ${headers}/include/${name})
        file(MAKE_DIRECTORY ${headers}/include)
        file(CREATE_LINK /usr/include/${name} ${headers}/include/${name} SYMBOLIC)
    endif()
endforeach()
foreach(folder IN ITEMS lib/${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu/cmake/xtensor lib/${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu/cmake/xsimd
        share/cmake/xtl share/cmake/nlohmann_json lib/cmake/Catch2)
    if(EXISTS /usr/${folder} AND NOT EXISTS ${headers}/${folder})
        get_filename_component(place ${headers}/${folder} DIRECTORY)
        file(COPY /usr/${folder} DESTINATION ${place} PATTERN "*Targets-none.cmake" EXCLUDE)  # a library for this machine
    endif()
    get_filename_component(package ${folder} NAME)
    set(${package}_DIR ${headers}/${folder} CACHE PATH "Where ${package} is found")
endforeach()
