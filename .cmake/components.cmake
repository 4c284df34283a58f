# isogloss_component(NAME [PACKAGE VERSION DEBIAN TARGET]): a part of the library beside the core that is
# asked for by name, in CMake as isogloss::NAME, and that alone needs PACKAGE, where it needs one.
macro(isogloss_component name)
    if("${name}" IN_LIST ISOGLOSS_COMPONENTS)
        add_library(isogloss_${name} INTERFACE)
        add_library(isogloss::${name} ALIAS isogloss_${name})
        target_link_libraries(isogloss_${name} INTERFACE isogloss)
        set_target_properties(isogloss_${name} PROPERTIES EXPORT_NAME ${name})
        if(${ARGC} GREATER 1)
            isogloss_find(${ARGV1} ${ARGV2} ${ARGV3})
            target_link_libraries(isogloss_${name} INTERFACE ${ARGV4})
            set(isogloss_${name}_dependency "find_dependency(${ARGV1})\n")
            set(isogloss_${name}_requires ", ${ARGV1}")  # pkg-config's name of it
        endif()
        list(APPEND isogloss_components ${name})
    else()
        list(APPEND isogloss_components_left_out ${name})
    endif()
endmacro()
# isogloss_wanted(OPTION NAME): sets `wanted` in the caller: whether an option that is ON, OFF or a list of names asks for this one.
function(isogloss_wanted option name)
    string(TOUPPER "${${option}}" all)
    if(all MATCHES "^(ON|TRUE|YES|Y|1)$" OR name IN_LIST ${option})
        set(wanted TRUE PARENT_SCOPE)
    else()
        set(wanted FALSE PARENT_SCOPE)
    endif()
endfunction()

# isogloss_refuse_unknown(OPTION KNOWN VALUE...): an error for a value that is neither ON, OFF or the like nor a list of names known.
function(isogloss_refuse_unknown option known)
    foreach(name IN LISTS ARGN)
        string(TOUPPER "${name}" all)
        if(NOT name IN_LIST known AND NOT all MATCHES "^(ON|TRUE|YES|Y|1|OFF|FALSE|NO|N|0)$")
            list(JOIN known ", " known)
            message(FATAL_ERROR "isogloss: ${option} names '${name}', expected a list of some of: ${known}.\n"
                "Separate names by semicolons: -D${option}=\"a;b\"")
        endif()
    endforeach()
endfunction()

set(isogloss_components "")
set(isogloss_components_left_out "")
