# The API reference: sh reference.sh DOXYGEN FOLDER GUIDE, with the Doxyfile in the folder. GUIDE is the path from the reference to
# the pages, empty where there are none.
set -e
cd "$2"
rm -rf html xml  # Doxygen leaves the pages of what is gone
ISOGLOSS_GUIDE=$3 "$1" Doxyfile
# Doxygen 1.9.4 offers the list of nested classes also where all of them are private and it shows none.
grep -L 'id="nested-classes"' html/class*.html html/struct*.html | xargs sed -i '/^<a href="#nested-classes">Classes<\/a> &#124;$/d'
