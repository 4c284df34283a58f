#!/usr/bin/env bash
# Studies of docs/lab/lds.md that are too small for a table of their own: bash studies.sh PROGRAM DATA RESULTS em|tags|starts
# PROGRAM is lds_text, DATA has ptb/ and ud-english-ewt/, RESULTS gets CSV files; systems are left in the folder of the call.
set -euo pipefail
program=$1 data=$2 results=$3
ptb() { echo "$data/ptb/ptb.$1.txt"; }
ewt() { echo "$data/ud-english-ewt/en_ewt-ud-$1.conllu"; }
# The words of CoNLL-U, a sentence a line; with NUM for digits.
words() { awk -F'\t' -v digits="$1" 'NF == 0 {print ""} $1 ~ /^[0-9]+$/ {w = $2; if (digits) gsub(/[0-9]+/, "NUM", w); printf "%s ", w}'; }

case $4 in
em)  # not run to its end yet: EM to a hundred iterations on the Penn Treebank, as the paper's figure 2; and with the noise of the states kept
    fit="fit --train $(ptb train) --states 100 --vocabulary 10000 --em-lags 7 --pseudo-counts 100 --threads 1"
    "$program" $fit --model ptb.lds --ssid-lags 4 --iterations 100 --log "$results/em_ssid.csv"
    "$program" $fit --model random.lds --random-start --iterations 100 --log "$results/em_random.csv"
    "$program" $fit --model fixed.lds --ssid-lags 4 --fixed-noise --iterations 30 --log "$results/em_fixed_noise.csv"
    python3 - "$results" <<'END' ;;
import csv, sys
columns = [0, 1, 2, 3, 5, 8, 10, 20, 30, 50, 70, 100]
with open(f"{sys.argv[1]}/em_iterations.csv", "w") as out:
    print("EM", *columns, sep=",", file=out)
    for name, log in ("Penn Treebank", "ssid"), ("random start", "random"), ("the noise of the states kept", "fixed_noise"):
        rows = {int(r["iteration"]): float(r["above_static"]) for r in csv.DictReader(open(f"{sys.argv[1]}/em_{log}.csv"))}
        print(name, *(f"{rows[i]:.2f}" if i in rows else "" for i in columns), sep=",", file=out)
END
tags)  # tags of UD English EWT by systems of its own training text
    echo "system,tags,majority,seed,dev,test" > "$results/em_tags.csv"
    tag() {  # system, format, majority, seed, suffix of the files
        for part in train dev test; do
            if [ "$5" ]; then
                awk -F'\t' -v OFS='\t' '$1 ~ /^[0-9]+$/ {gsub(/[0-9]+/, "NUM", $2)} {print}' "$(ewt $part)" > "$part$5.conllu"
            else cp "$(ewt $part)" "$part.conllu"; fi
        done
        "$program" tag --model "$1.lds" --train "train$5.conllu" --dev "dev$5.conllu" --test "test$5.conllu" --format "$2" --majority "$3" \
            --epochs 6 --batch 64 --seed "$4" --threads 1 --json 2> /dev/null |
            python3 -c 'import json, sys; r = json.load(sys.stdin); print(*sys.argv[1:], *("%.2f" % (100 * r[part]) for part in ("dev", "test")), sep=",")' "$1" "$2" "$3" "$4" \
            >> "$results/em_tags.csv"
    }
    words "" < "$(ewt train)" > ewt.txt
    words 1 < "$(ewt train)" > ewt.num.txt
    fit="--states 100 --vocabulary 10000 --ssid-lags 4 --em-lags 7 --pseudo-counts 10.856 --threads 1"
    for iterations in 0 5 20 50 100; do  # each goes on from the one before
        if [ $iterations = 0 ]; then "$program" fit --train ewt.txt $fit --model ewt.lds --iterations 0 --log "$results/em_ewt.csv"
        else "$program" fit --train ewt.txt --model ewt.lds --resume --iterations $iterations --threads 1 --log "$results/em_ewt.csv"; fi
        cp ewt.lds "EM $iterations.lds"
        tag "EM $iterations" conllu 0 1 ""
    done
    "$program" fit --train ewt.num.txt $fit --model "NUM EM 20.lds" --iterations 20
    tag "NUM EM 20" conllu 0 1 .num
    for system in "EM 0" "EM 20"; do tag "$system" xpos 0 1 ""; tag "$system" conllu 500 1 ""; tag "$system" xpos 500 1 ""; done ;;
starts)  # not run to its end yet: a fifth of the Penn Treebank, 100 units: starts of a recurrent network, and settings of the random one
    head -8000 "$(ptb train)" > small.txt
    fit="fit --train small.txt --states 100 --vocabulary 10000 --ssid-lags 4 --em-lags 7 --pseudo-counts 20 --threads 1"
    "$program" $fit --model small.ssid.lds --iterations 0
    "$program" $fit --model small.lds --iterations 5
    rnn() {  # name of the log, options
        "$program" rnn --train small.txt --valid "$(ptb valid)" --test "$(ptb test)" --epsilon 0.00390625 --threads 1 --log "$results/rnn_small_$1.csv" "${@:2}"
    }
    random="--vocabulary-from small.lds --units 100"
    for setting in "$@"; do case $setting in
        random_*) IFS=_ read -r _ rate clip init <<< "$setting"; rnn "$setting" $random --rate "$rate" --clip "$clip" --init "$init" --epochs 5 ;;
        em) rnn em --model small.lds --rate 0.1 --epochs 20 ;;
        ssid) rnn ssid --model small.ssid.lds --rate 0.1 --epochs 20 ;;
        tied_em_*) rnn "$setting" --tied --model small.lds --power "${setting#tied_em_}" --rate 0.1 --epochs 5 ;;
        tied_random) rnn tied_random --tied $random --rate 0.2 --init 0.03 --epochs 5 ;;
    esac; done ;;
esac
