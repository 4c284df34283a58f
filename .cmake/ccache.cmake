# ccache where it is found, unless a launcher was named. It has to be told that a precompiled header may stand for what
# it was made of; -fpch-preprocess is what GCC needs for that. Files are compared byte by byte (depend mode): compared after
# the preprocessor, which drops comments, a header with another comment would be given an older precompiled header, and
# what includes the header again would see it twice. The namespace leaves what an older setting has put there alone.
if(ISOGLOSS_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    find_program(ISOGLOSS_CCACHE_PROGRAM ccache)
    if(ISOGLOSS_CCACHE_PROGRAM)
        set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
            CCACHE_DEPEND=true CCACHE_NAMESPACE=isogloss-depend
            CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
            ${ISOGLOSS_CCACHE_PROGRAM})
        if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
            add_compile_options(-fpch-preprocess)
        endif()
    endif()
endif()
