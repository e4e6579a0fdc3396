#!/bin/sh
# What scripts ask `scontrol` in a job of Danlu's: the names of its nodes. Laid down by Danlu.
case "${1-} ${2-}" in
'show hostnames' | 'show hostname') echo "${3-$SLURM_JOB_NODELIST}" | tr , '\n' ;;
*)
    echo "scontrol: a job of Danlu's can ask for \`show hostnames\` only" >&2
    exit 1
    ;;
esac
