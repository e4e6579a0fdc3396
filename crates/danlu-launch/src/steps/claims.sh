# shellcheck shell=sh disable=SC2154 # a part of `srun`, and reads its variables
# Where the tasks of a step go, and what they hold of each node while they run. Sourced by `srun`; laid down by Danlu.
#
# Steps with devices of their own (`--gres`, `--gpus…`), or with `--exclusive` or `--exact`, hold what they were given
# until they end, and wait where it is held by others; `--overlap` holds nothing. All others share what the job has.
# `held` in a step's folder has a line for each node: its number, cores, devices by their place, and ranks.

# How many devices `gpu:a100:2,gpu:1` or `gres/gpu=2,cpu=4` names.
devices_in() {
    printf '%s\n' "$1" | tr ',' '\n' | awk '
        { sub(/\(.*/, ""); sub(/^gres[\/:]/, ""); gsub(/=/, ":") }
        /^(gpu|npu|ascend|dcu|mlu)[^:]*$/ { total += 1; next }
        /^(gpu|npu|ascend|dcu|mlu)[^:]*:/ { n = split($0, part, ":"); total += (part[n] ~ /^[0-9]+$/) ? part[n] : 1; next }
        /^[0-9]+$/ { total += $0; next }
        END { print total + 0 }'
}

# `30`, `30:15`, `4:30:00`, `1-12`, `1-12:30:00` in seconds; nothing where there is no limit.
seconds_of() {
    case $1 in 0 | -1 | UNLIMITED | unlimited | INFINITE | infinite) return 0 ;; esac
    printf '%s\n' "$1" | awk '
        !/^([0-9]+-)?[0-9]+(:[0-9]+)?(:[0-9]+)?$/ { exit 1 }
        {
            days = 0; has_days = split($0, by_day, "-") == 2
            if (has_days) { days = by_day[1]; $0 = by_day[2] }
            count = split($0, part, ":")
            if (has_days) seconds = part[1] * 3600 + part[2] * 60 + part[3]
            else if (count == 1) seconds = part[1] * 60
            else if (count == 2) seconds = part[1] * 60 + part[2]
            else seconds = part[1] * 3600 + part[2] * 60 + part[3]
            print days * 86400 + seconds
        }'
}

# Word N of a list, counted from 0.
word() { [ "$1" -ge "$(($# - 1))" ] || { shift "$(($1 + 1))" && echo "$1"; }; }

# The places of the nodes that a list names, in its order. A name that several workers have is the next of them each time.
places_of() {
    found_places=''
    case $1 in */*) text=$(tr '\n' ',' < "$1") ;; *) text=$1 ;; esac
    for host in $(danlu_hosts "$text"); do
        place=0 hit='' known=''
        # shellcheck disable=SC2046 # names
        set -- $(echo "${DANLU_NODE_NAMES-}" | tr , ' ')
        for own_name in $own_names; do
            if [ "$host" = "$own_name" ] || [ "$host" = "${1-}" ]; then
                known=1
                case " $found_places " in *" $place "*) ;; *) [ -n "$hit" ] || hit=$place ;; esac
            fi
            [ $# = 0 ] || shift
            place=$((place + 1))
        done
        [ -n "$known" ] || complain "the job has no node \`$host\`; it has $SLURM_JOB_NODELIST"
        [ -z "$hit" ] || found_places="$found_places $hit"
    done
}

# How many nodes and tasks, how many tasks on each, and what each needs: `nodes`, `tasks`, `counts`.
lay_out() {
    each=$((DANLU_WORLD_SIZE / DANLU_WORKERS)) cores=$SLURM_CPUS_ON_NODE devices=${SLURM_GPUS_ON_NODE-0}
    own_names=$(danlu_hosts "$SLURM_JOB_NODELIST") holds=''
    [ -z "$exact$gpus$gpus_per_node$gpus_per_task$tasks_per_gpu" ] || holds=1
    [ -z "$overlap" ] || holds=''
    if [ -n "$tasks_per_gpu" ] && [ -z "$tasks" ]; then
        if [ -n "$gpus" ]; then tasks=$((gpus * tasks_per_gpu)); else per_node=$((${gpus_per_node:-$devices} * tasks_per_gpu)); fi
    fi
    if [ -n "$gpus" ] && [ -n "$gpus_per_task" ] && [ "$gpus_per_task" -gt 0 ] && [ -z "$tasks" ]; then
        tasks=$((gpus / gpus_per_task))
    fi

    listed='' candidates=''
    if [ -n "$list" ]; then
        places_of "$list"
        listed=$found_places
    fi
    excluded=''
    if [ -n "$exclude" ]; then
        places_of "$exclude"
        excluded=$found_places
    fi
    place=$relative
    while [ "$place" -lt "$DANLU_WORKERS" ]; do
        case " $excluded $listed " in *" $place "*) ;; *) candidates="$candidates $place" ;; esac
        place=$((place + 1))
    done
    # shellcheck disable=SC2086 # numbers
    if [ -n "$listed" ]; then
        named=$(set -- $listed && echo $#)
        [ -n "$nodes" ] && [ "$nodes" -gt "$named" ] || nodes=$named
    fi
    # shellcheck disable=SC2086 # numbers
    most=$(set -- $listed $candidates && echo $#)
    if [ -z "$nodes" ]; then
        nodes=$most
        [ -z "$tasks" ] || [ "$tasks" -ge "$nodes" ] || nodes=$tasks
        [ -z "$gpus" ] || [ "$gpus" = 0 ] || [ "$gpus" -ge "$nodes" ] || nodes=$gpus
        # As few as will do, where a step has what it asks for to itself.
        if [ -n "$exact" ] && [ -n "$tasks" ]; then
            fewest=$(((tasks * ${cpus_per_task:-1} + cores - 1) / cores))
            [ -z "$per_node" ] || fewest=$(((tasks + per_node - 1) / per_node))
            [ -z "$gpus_per_task" ] || [ "$devices" = 0 ] || [ "$(((tasks * gpus_per_task + devices - 1) / devices))" -le "$fewest" ] ||
                fewest=$(((tasks * gpus_per_task + devices - 1) / devices))
            [ "$fewest" -gt "$nodes" ] || nodes=$fewest
        fi
    fi
    [ "$nodes" -gt 0 ] || complain 'no node of the job is left for the step'
    [ "$nodes" -le "$most" ] || complain "the step asks for $nodes nodes, and can have $most of the job's $DANLU_WORKERS"
    if [ -z "$tasks" ]; then tasks=$((nodes * ${per_node:-$each})); fi
    [ "$tasks" -ge "$nodes" ] || nodes=$tasks
    counts='' index=0
    while [ "$index" -lt "$nodes" ]; do
        count=$((tasks / nodes))
        [ "$index" -ge "$((tasks % nodes))" ] || count=$((count + 1))
        counts="$counts $count"
        index=$((index + 1))
    done
    largest=$(((tasks + nodes - 1) / nodes))
    [ -z "$per_node" ] || [ "$largest" -le "$per_node" ] || complain "$tasks tasks do not fit on $nodes nodes with $per_node on each"
    if [ "$largest" -gt "$each" ] && [ -z "$overcommit" ] && [ "$((largest * ${cpus_per_task:-1}))" -gt "$cores" ]; then
        complain "$largest tasks on a node need $((largest * ${cpus_per_task:-1})) cores, and the job has $cores: \`#SBATCH --ntasks-per-node=$largest\` asks for more, \`srun --overcommit\` does without"
    fi
    largest_devices=$(devices_for 0 "$largest")
    case $largest_devices in
    all) ;;
    *) [ "$largest_devices" -le "$devices" ] || complain "the step asks for $largest_devices devices of a node, and the job has $devices" ;;
    esac
    [ -z "$exact" ] || [ "$((largest * ${cpus_per_task:-1}))" -le "$cores" ] || [ "$largest" -le "$each" ] || [ -n "$overcommit" ] ||
        complain "the step asks for $((largest * ${cpus_per_task:-1})) cores of a node, and the job has $cores"
}

# How many devices node INDEX of the step gives to COUNT tasks.
devices_for() {
    if [ -n "$gpus_per_node" ]; then
        echo "$gpus_per_node"
    elif [ -n "$gpus" ]; then
        share=$((gpus / nodes))
        [ "$1" -ge "$((gpus % nodes))" ] || share=$((share + 1))
        echo "$share"
    elif [ -n "$gpus_per_task" ]; then
        echo "$(($2 * gpus_per_task))"
    else
        echo all
    fi
}

cores_for() {
    wanted_cores=$(($1 * ${cpus_per_task:-1}))
    [ "$wanted_cores" -le "$cores" ] || wanted_cores=$cores
    echo "$wanted_cores"
}

lock() {
    until mkdir "$steps/lock" 2> /dev/null; do
        # Whoever held it was killed.
        owner=$(cat "$steps/lock/owner" 2> /dev/null)
        case $owner in "$DANLU_WORKER "*) kill -0 "${owner#* }" 2> /dev/null || rm -rf "$steps/lock" ;; esac
        sleep 0.1
    done
    echo "$DANLU_WORKER $$" > "$steps/lock/owner"
    locked=1
}
unlock() {
    [ -z "${locked-}" ] || rm -rf "$steps/lock"
    locked=''
}

# What other steps hold of a node: `busy_cores`, `busy_devices`, `busy_ranks`.
look_at() {
    busy_cores=0 busy_devices=' ' busy_ranks=' '
    for held in "$steps"/*/held; do
        [ -e "$held" ] || continue
        while read -r at its_cores its_devices its_ranks; do
            [ "$at" = "$1" ] || continue
            busy_cores=$((busy_cores + its_cores))
            [ "$its_devices" = - ] || busy_devices="$busy_devices$(echo "$its_devices" | tr , ' ') "
            busy_ranks="$busy_ranks$(echo "$its_ranks" | tr , ' ') "
        done < "$held"
    done
}

# Takes node PLACE as the step's next: its devices into `taken`. Fails where too much of it is held.
take() {
    # shellcheck disable=SC2086 # numbers
    count=$(word "$index" $counts)
    want=$(devices_for "$index" "$count")
    [ "$want" != all ] || want=$devices
    busy_cores=0 busy_devices=' ' busy_ranks=' ' needs_cores=0
    if [ -n "$holds" ]; then
        look_at "$1"
        [ -z "$exact" ] || needs_cores=$(cores_for "$count")
        [ "$((busy_cores + needs_cores))" -le "$cores" ] || return 1
    fi
    taken='' position=0 got=0
    while [ "$position" -lt "$devices" ] && [ "$got" -lt "$want" ]; do
        case $busy_devices in
        *" $position "*) ;;
        *) taken="$taken $position" got=$((got + 1)) ;;
        esac
        position=$((position + 1))
    done
    [ "$got" = "$want" ] || return 1
    # shellcheck disable=SC2086 # numbers
    place_tasks "$1" $taken
}

# The devices of local task N, of those that the node gives to the step.
devices_of_task() {
    local_task=$1
    shift
    of_each='' from=''
    case $gpu_bind in
    single:*) from=$((local_task / ${gpu_bind#single:})) of_each=1 ;;
    per_task:*) of_each=${gpu_bind#per_task:} from=$((local_task * of_each)) ;;
    map_gpu:*)
        map=$(echo "${gpu_bind#map_gpu:}" | tr , ' ')
        # shellcheck disable=SC2086 # numbers
        from=$(word "$((local_task % $(set -- $map && echo $#)))" $map) of_each=1
        ;;
    none | closest* | mask_gpu*) ;;
    *)
        if [ -n "$gpus_per_task" ]; then
            of_each=$gpus_per_task from=$((local_task * gpus_per_task))
        elif [ -n "$tasks_per_gpu" ]; then
            of_each=1 from=$((local_task / tasks_per_gpu))
        fi
        ;;
    esac
    if [ -z "$of_each" ]; then
        mine=$*
    elif [ "$#" = 0 ] || [ "$of_each" = 0 ]; then
        mine=''
    else
        [ "$from" -lt $# ] || from=$((from % $#))
        mine=$(echo "$*" | cut -d ' ' -f "$((from + 1))-$((from + of_each))")
    fi
    [ -n "$mine" ] || mine=-
    echo "$mine" | tr ' ' ,
}

# Writes the lines of a node's tasks: its place, then its devices.
place_tasks() {
    at=$1
    shift
    local_task=0 ranks_here='' shared_devices=$(devices_of_task 0 "$@")
    binds=''
    case $gpu_bind in single:* | per_task:* | map_gpu:*) binds=1 ;; '') [ -z "$gpus_per_task$tasks_per_gpu" ] || binds=1 ;; esac
    while [ "$local_task" -lt "$count" ]; do
        slot=$((local_task % each))
        if [ -n "$exact" ] && [ -n "$holds" ]; then
            # The rank that has least to do: each has cores of its own, and a log.
            best=0 least=''
            slot=0
            while [ "$slot" -lt "$each" ]; do
                load=$(echo "$busy_ranks $ranks_here" | tr ' ' '\n' | grep -cx "$((at * each + slot))")
                if [ -z "$least" ] || [ "$load" -lt "$least" ]; then best=$slot least=$load; fi
                slot=$((slot + 1))
            done
            slot=$best
        fi
        rank=$((at * each + slot))
        ranks_here="$ranks_here $rank"
        [ -z "$binds" ] || shared_devices=$(devices_of_task "$local_task" "$@")
        echo "$rank $index $local_task $shared_devices"
        local_task=$((local_task + 1))
    done >> "$step/placed"
    ranks_chosen="$ranks_chosen$ranks_here"
    chosen="$chosen $at"
    [ $# -gt 0 ] || set -- -
    [ -z "$holds" ] || echo "$at $needs_cores $(echo "$*" | tr ' ' ,) $(echo "${ranks_here# }" | tr ' ' ,)" >> "$step/held.new"
}

# Finds places for all tasks at once; fails where other steps hold too much.
try_claim() {
    chosen='' ranks_chosen='' index=0
    rm -f "$step/placed" "$step/held.new"
    for place in $listed $candidates; do
        [ "$index" -lt "$nodes" ] || break
        if take "$place"; then
            index=$((index + 1))
        else
            case " $listed " in *" $place "*) return 1 ;; esac
        fi
    done
    [ "$index" = "$nodes" ]
}

claim() {
    waited=0
    while :; do
        [ -z "$holds" ] || lock
        if try_claim; then break; fi
        unlock
        [ "$waited" != 0 ] || say 'the step waits for cores or devices that other steps of the job hold'
        [ -z "$immediate" ] || [ "$waited" -lt "$((immediate * 10))" ] ||
            complain 'what the step asks for did not become free in time'
        waited=$((waited + 1))
        sleep 0.1
    done
    [ ! -e "$step/held.new" ] || mv "$step/held.new" "$step/held"
    unlock
    # Numbered node by node, or in turn.
    case $distribution in
    cyclic*) sort -s -n -k 3,3 "$step/placed" ;;
    *) cat "$step/placed" ;;
    esac | awk '{ print $1, NR - 1, $3, $2, $4 }' > "$step/tasks"
    names_chosen=''
    for place in $chosen; do
        # shellcheck disable=SC2086 # names
        names_chosen="$names_chosen,$(word "$place" $own_names)"
    done
    names_chosen=${names_chosen#,}
}
