# The programs in Markdown pages: a block ```cpp with a main, or all blocks ```cpp NAME of a page, joined.
#
#   awk -f programs.awk PAGES                 one C++ program that runs them all, each in a namespace of its own
#   awk -v program=NAME -f programs.awk PAGE  the program NAME alone, as it stands
#
# #line makes the compiler speak of the page. Blocks with neither main nor name are left out.

BEGIN { print "#undef NDEBUG  // their checks are assertions\n#include <cassert>" }
FNR == 1 { inside = 0 }
/^```/ {
    inside = !inside && $1 == "```cpp" ? FILENAME " " ($2 ? $2 : FNR) : 0
    if (inside) name = $2
    if (inside && !(inside in code)) order[++count] = inside
    if (inside) code[inside] = code[inside] "#line " FNR + 1 " \"" FILENAME "\"\n"
    next
}
!inside { next }
program != "" { if (name == program) print; next }
/^#include/ { includes[$2] = $2; next }
!name && /^int main\(/ && !/^int main\(\) \{/ {
    print FILENAME ":" FNR ": found a main with arguments, expected `int main() {` or a block with a name" > "/dev/stderr"
    failed = 1
    exit 1
}
/^int main\(\) \{/ { has_main[inside] = 1; sub(/main/, "program") }
/^}$/ && has_main[inside] { $0 = "    return 0;\n}" }
{ code[inside] = code[inside] $0 "\n" }

END {
    if (failed) exit 1
    if (program != "") exit
    print "#include <cstdio>"
    for (i in includes) print "#include " i
    for (i = 1; i <= count; ++i)
        if (has_main[order[i]]) print "namespace page_" i " {\n" code[order[i]] "}  // namespace"
    print "int main() {\n    int failed = 0;"
    print "    const auto run = [&](const char* where, int (*program)()) {"
    print "        std::printf(\"--- %s\\n\", where);\n        if (program() != 0) ++failed, std::puts(\"failed\");\n    };"
    for (i = 1; i <= count; ++i)
        if (has_main[order[i]]) print "    run(\"" order[i] "\", page_" i "::program);"
    print "    return failed;\n}"
}
