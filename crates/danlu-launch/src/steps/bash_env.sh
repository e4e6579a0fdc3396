# shellcheck shell=bash
# What every bash in a job from a batch script reads first: `srun` is Danlu's, whatever a profile made of PATH.
case $PATH in
"$DANLU_RUN_DIR/slurm/bin":*) ;;
*) PATH=$DANLU_RUN_DIR/slurm/bin:$PATH ;;
esac
# shellcheck disable=SC1090 # the site's own
[ -z "${DANLU_BASH_ENV-}" ] || . "$DANLU_BASH_ENV"
