# shellcheck shell=sh
# What `srun`, `scontrol` and the tasks of steps have in common. Sourced; laid down by Danlu.

# The names of a host list, one on each line: `n[1-3,07],m1` is n1, n2, n3, n07 and m1.
danlu_hosts() {
    printf '%s\n' "$1" | awk '
        function names(text,    open, close_, head, tail, parts, count, i, ends, width, number) {
            open = index(text, "["); close_ = index(text, "]")
            if (open == 0 || close_ < open) { if (text != "") print text; return }
            head = substr(text, 1, open - 1); tail = substr(text, close_ + 1)
            count = split(substr(text, open + 1, close_ - open - 1), parts, ",")
            for (i = 1; i <= count; i++) {
                if (split(parts[i], ends, "-") < 2) { names(head parts[i] tail); continue }
                width = length(ends[1])
                for (number = ends[1] + 0; number <= ends[2] + 0 && number - ends[1] < 65536; number++)
                    names(head sprintf("%0" width "d", number) tail)
            }
        }
        {
            # Commas within brackets separate numbers, not hosts.
            depth = 0; name = ""
            for (at = 1; at <= length($0); at++) {
                letter = substr($0, at, 1)
                if (letter == "[") depth++
                if (letter == "]") depth--
                if (letter == "," && depth == 0) { names(name); name = "" } else name = name letter
            }
            names(name)
        }'
}

# A file name with its patterns filled in: PATTERN TASK NODE NODE-NAME.
danlu_file() {
    DANLU_PATTERN=$1 DANLU_PATTERN_USER=${SLURM_JOB_USER-} awk -v t="$2" -v n="$3" -v N="$4" \
        -v s="${SLURM_STEP_ID-0}" '
        BEGIN {
            job = ENVIRON["SLURM_JOB_ID"]
            value["t"] = t; value["n"] = n; value["N"] = N; value["s"] = s; value["j"] = job
            value["J"] = job "." s; value["x"] = ENVIRON["SLURM_JOB_NAME"]; value["u"] = ENVIRON["DANLU_PATTERN_USER"]
            value["A"] = ("SLURM_ARRAY_JOB_ID" in ENVIRON) ? ENVIRON["SLURM_ARRAY_JOB_ID"] : job
            value["a"] = ENVIRON["SLURM_ARRAY_TASK_ID"]; value["b"] = value["a"] % 10
            text = ENVIRON["DANLU_PATTERN"]; out = ""
            while (match(text, /%[0-9]*[A-Za-z%]/)) {
                out = out substr(text, 1, RSTART - 1)
                found = substr(text, RSTART + 1, RLENGTH - 1); letter = substr(found, length(found))
                width = substr(found, 1, length(found) - 1)
                if (letter == "%") out = out "%"
                else if (letter in value) out = out (width != "" && value[letter] ~ /^[0-9]+$/ ? sprintf("%0" width "d", value[letter]) : value[letter])
                else out = out "%" found
                text = substr(text, RSTART + RLENGTH)
            }
            print out text
        }'
}

# Sends a signal to a process and all that came from it: SIGNAL PID. Each is halted before its children are looked up, or one
# that is just being started would be missed and go on alone.
danlu_signal_tree() {
    danlu_halted=$(danlu_halt "$2")
    # shellcheck disable=SC2086 # numbers
    kill -s "$1" $danlu_halted
    # shellcheck disable=SC2086 # numbers
    kill -s CONT $danlu_halted
}
# The first comes last: whoever waits for it ends this helper as soon as it is gone, and by then all others must go on.
danlu_halt() {
    kill -s STOP "$1" || return 0
    # shellcheck disable=SC2013 # numbers
    for danlu_of_tree in $(cat "/proc/$1/task/"*/children); do
        danlu_halt "$danlu_of_tree"
    done
    printf '%s ' "$1"
}
