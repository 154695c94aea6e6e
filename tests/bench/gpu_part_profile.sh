# SPDX-License-Identifier: Apache-2.0
# Part profile: the share of each kernel in a training (kernel_times.c), and three kernels looked at
# with ncu. Read by gpu_part.sh behind gpu_part_train.sh, whose words and variables it uses.
# shellcheck shell=sh disable=SC2016,SC2154 # as there

# Trains as part modes does, with every kernel timed; $times has the table.
profile_times() { # MODE DTYPE
    times=$out/kernels-$1-$2.txt
    order=$out/rows-order
    rm -f "$times" "$order"
    training "$1" "$2" "$pairs"
    # A list of words.
    # shellcheck disable=SC2086
    measured "$1-$2" $((limit / 4)) env "CUDA_INJECTION64_PATH=$build/kernel_times.so" \
        "KERNEL_TIMES=$times" "KERNEL_ORDER=$order" "$build/bin/bench_train" --one "$1-$2" 4 $((limit / 24 + 1)) "$gib" $words
}

# Shows where the device waited longest for the host: between the first step of an optimizer and the
# last one, so that what comes before the first update is left out.
profile_waits() { # FILE of KERNEL_ORDER
    [ -s "$1" ] || return 0
    sort -n "$1" | awk -F '\t' '
        $3 ~ /^step_/ { if (!count) first = $1; last = $1 }
        $3 ~ /^step_/ || count { begun[++count] = $1; ended[count] = $2; name[count] = $3 }
        END {
            until = first
            for (i = 1; i <= count && begun[i] <= last; i++) {
                if (begun[i] > until) printf "%.1f\t%s\t%s\n", begun[i] - until, name[i - 1], name[i]
                if (ended[i] > until) until = ended[i]
            }
        }' | sort -rn | head -n 6 | awk -F '\t' '
        NR == 1 {
            print "\nLongest waits of the device between the first and the last step of an optimizer:\n"
            print "| us | behind | before |"
            print "|---:|---|---|"
        }
        { printf "| %s | `%s` | `%s` |\n", $1, $2, $3 }' >>"$out/$part.md"
}

# Shows the kernels that take most time. What the first launch of each took is told by `most`: there
# memory is made, and code is loaded.
profile_rows() { # MODE DTYPE
    say ''
    profile_times "$1" "$2"
    has_figures || {
        say "$1, $2: $(field 3 "$line")."
        return
    }
    [ -s "$times" ] || {
        say "$1, $2: no kernel was recorded: $(grep -m 1 kernel_times "$out/$part.line")"
        return
    }
    awk -F '\t' -v what="$1, $2" '
        $1 == "span" {
            printf "%s: %.0f ms from the first launch to the last, %.0f %% of it with one at work.\n\n", what,
                $2 / 1000, ($2 > 0) ? 100 * $3 / $2 : 0
            print "| kernel, blocks | % of all | launches | median, us | least | most |"
            print "|---|---:|---:|---:|---:|---:|"
            all = $3
            next
        }
        all > 0 && rows++ < 14 {
            printf "| `%s` | %.1f | %d | %s | %s | %s |\n", $1, 100 * $3 / all, $2, $5, $4, $6
        }' "$times" >>"$out/$part.md"
    profile_waits "$order"
    rm -f "$order"
    figure "busy-$1-$2" "$(awk -F '\t' '$1 == "span" && $2 > 0 { print $3 / $2 }' "$times")"
}

# Prints the kernel that takes most time of the last table and is neither a copy, nor a library's, nor
# among those that are looked at already.
profile_first() {
    awk -F '\t' -v looks="$looks " '
        $1 ~ /^[a-z0-9_]+_(kernel|bf16|f16|f32)[a-z0-9_]* </ {
            sub(/ <.*/, "", $1)
            if (index(looks, ":" $1 " ") > 0) next
            print $1
            exit
        }' "$times"
}

ncu_metrics=gpu__time_duration.sum,sm__throughput.avg.pct_of_peak_sustained_elapsed,dram__throughput.avg.pct_of_peak_sustained_elapsed,sm__warps_active.avg.pct_of_peak_sustained_active,launch__registers_per_thread,launch__grid_size

# Looks at one launch of a kernel, behind a few others of it; clocks are left alone.
profile_kernel() { # MODE DTYPE KERNEL
    training "$1" "$2" "$pairs"
    # A list of words.
    # shellcheck disable=SC2086
    bounded "$out/ncu-$3.csv" $((limit / 8)) ncu --clock-control none --kernel-name "$3" --launch-skip 20 \
        --launch-count 1 --metrics "$ncu_metrics" --csv --page raw \
        "$build/bin/bench_train" --one "$1-$2" 2 1 "$gib" $words
    seen=$?
    if is_late $seen; then
        say "| \`$3\` | slower than $most s | | | | | |"
        return
    fi
    # Names, units and values are a line each, behind what ncu and the program say.
    awk -v kernel="$3" '
        /^"ID"/ { at = 1; count = split(substr($0, 2, length($0) - 2), name, "\",\""); next }
        at == 1 { at = 2; split(substr($0, 2, length($0) - 2), unit, "\",\""); next }
        at == 2 {
            at = 3
            split(substr($0, 2, length($0) - 2), value, "\",\"")
            for (i = 1; i <= count; i++) { is[name[i]] = value[i]; of[name[i]] = unit[i] }
        }
        { last = $0 }
        END {
            if (at != 3) {
                printf "| `%s` | not seen: %s | | | | | |\n", kernel, last
                exit
            }
            time = "gpu__time_duration.sum"
            printf "| `%s` | %s | %s %s | %s | %s | %s | %s |\n", kernel, is["launch__grid_size"], is[time],
                of[time], is["sm__throughput.avg.pct_of_peak_sustained_elapsed"],
                is["dram__throughput.avg.pct_of_peak_sustained_elapsed"],
                is["sm__warps_active.avg.pct_of_peak_sustained_active"], is["launch__registers_per_thread"]
        }' "$out/ncu-$3.csv" >>"$out/$part.md"
}

part_profile() {
    [ "$device" = 1 ] || return 77
    [ "$prebuilt" = 1 ] || bounded "$log" 60 nvcc -x c -O2 -shared -Xcompiler -fPIC -cudart none \
        -I"$source" -o "$build/kernel_times.so" "$bench/kernel_times.c" -ldl
    [ -r "$build/kernel_times.so" ] || {
        say 'kernel_times.so could not be built: it needs the header of CUPTI.'
        [ "$prebuilt" = 1 ] || block "$log" 5
        return 77
    }
    model_of 125M
    result=77 looks=''
    say "DPO updates of the $model model as in part modes, its reference pass and its start included; each"
    say 'launch timed by CUPTI as it ran.'
    for case in fast:bf16 deterministic:bf16 invariant:f32; do
        profile_rows "${case%:*}" "${case#*:}"
        [ ! -s "$times" ] || looks="$looks $case:$(profile_first)"
    done
    command -v ncu >/dev/null || return $result
    say ''
    say 'One launch of the first of ours in each, none twice, by ncu; % of what the device can sustain.'
    say ''
    say '| kernel | blocks | time | % of instructions | % of memory | % of warps | registers |'
    say '|---|---:|---:|---:|---:|---:|---:|'
    for case in $looks; do
        kernel=${case##*:} case=${case%:*}
        [ -z "$kernel" ] || profile_kernel "${case%:*}" "${case#*:}" "$kernel"
    done
    return $result
}
