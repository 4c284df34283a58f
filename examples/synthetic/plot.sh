#!/usr/bin/env bash
# Learning curves of `synthetic --csv`: plot.sh OUT.svg CURVE.csv...   (needs gnuplot)
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: $0 OUT.svg CURVE.csv..." >&2; exit 2; }
command -v gnuplot >/dev/null || { echo "gnuplot is not installed: apt-get install gnuplot-nox" >&2; exit 1; }
out=$1
shift
curves=
for file in "$@"; do
    name=$(basename "$file" .csv)
    curves+="${curves:+, }'$file' using 1:4 with lines lw 2 title '${name//_/ }'"
done
gnuplot <<END
set datafile separator ','
set terminal svg size 800,500 font 'sans,12'
set output '$out'
set xlabel 'seconds'
set ylabel 'bits per symbol'
set logscale x
set key top right
plot $curves
END
