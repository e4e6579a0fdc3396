#!/bin/sh
# What scripts ask `scontrol` in a job of Danlu: the names of its nodes, and what is known of the job itself. Laid
# down by Danlu.
# shellcheck source-path=SCRIPTDIR source=library.sh
. "$DANLU_RUN_DIR/slurm/library"
case "${1-} ${2-}" in
'show hostnames' | 'show hostname') danlu_hosts "${3-$SLURM_JOB_NODELIST}" ;;
'show hostlist' | 'show hostlistsorted') printf '%s\n' "${3-$SLURM_JOB_NODELIST}" ;;
'show job' | 'show jobid')
    if [ "${3-$SLURM_JOB_ID}" != "$SLURM_JOB_ID" ]; then
        echo "scontrol: Danlu tells a job about itself only, which is $SLURM_JOB_ID; \`danlu show ${3-}\` tells of others, from outside" >&2
        exit 1
    fi
    cat << END
JobId=$SLURM_JOB_ID JobName=$SLURM_JOB_NAME
   UserId=$SLURM_JOB_USER JobState=RUNNING Restarts=$SLURM_RESTART_COUNT
   NodeList=$SLURM_JOB_NODELIST BatchHost=$(danlu_hosts "$SLURM_JOB_NODELIST" | head -n 1)
   NumNodes=$SLURM_JOB_NUM_NODES NumCPUs=$((SLURM_CPUS_ON_NODE * SLURM_JOB_NUM_NODES)) NumTasks=$SLURM_NTASKS CPUs/Task=$SLURM_CPUS_PER_TASK
   Command=$DANLU_RUN_DIR/slurm/script
   WorkDir=$SLURM_SUBMIT_DIR
END
    ;;
*)
    echo "scontrol: in a job of Danlu it can \`show hostnames\` and \`show job\`, and nothing else" >&2
    exit 1
    ;;
esac
