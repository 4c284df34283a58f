"""What the scripts of this folder require before they measure."""
import os
import sys

SCRIPT = os.path.basename(sys.argv[0])


def require_programs(*paths):
    """Ends the script if one of these is not a program."""
    for path in paths:
        if not os.path.isfile(path) or not os.access(path, os.X_OK):
            sys.exit(f"{SCRIPT}: found no program '{path}', expected it to have been built. Build it, or name the folder that it is in (--help)")


def require_place(path):
    """Ends the script if a file of results cannot be made because its folder is missing; None is no file."""
    if path and not os.path.isdir(os.path.dirname(os.path.abspath(path))):
        sys.exit(f"{SCRIPT}: found no folder for '{path}', expected an existing one. Create it, or give another name")
