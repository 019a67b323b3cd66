#!/usr/bin/env bash
# An experiment as an array of Slurm jobs, a shard each; see README.md beside this file.
#
#     sbatch --array=1-8 experiments/slurm/shards.sh ablate-one demo-translation --limit 500
#
#SBATCH --job-name=shards
#SBATCH --output=slurm-%A_%a.out
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR1@600
set -u

if [ $# -lt 2 ] || [ -z "${SLURM_ARRAY_TASK_ID:-}" ]; then
    echo "usage: sbatch --array=1-N experiments/slurm/shards.sh EXPERIMENT SUBJECT [OPTIONS]" >&2
    exit 2
fi
experiment=${PROGRAMS:-target/release}/$1
shift
if [ ! -x "$experiment" ]; then
    echo "there is no $experiment: begin in the root of the repository, after cargo build --release --locked" >&2
    exit 1
fi
# Some tasks alone, `--array=2,5`, do not tell how many shards there are.
shards=${SHARDS:-$SLURM_ARRAY_TASK_COUNT}

# The program finishes the rows that it is on when it is sent USR1 or TERM, and then ends with 75.
program=
is_out_of_time=
is_interrupted=
end() {
    is_interrupted=yes
    [ -z "$program" ] || kill -s "$1" "$program" 2>/dev/null
}
trap 'is_out_of_time=yes; end USR1' USR1
trap 'end TERM' TERM # preempted or cancelled: Slurm requeues a preempted task itself

# What cargo would set for the program, since the nodes need no cargo.
eval "$(sed -n 's/^\(MALLOC_[A-Z_]*\) = /export \1=/p' .cargo/config.toml 2>/dev/null)"
# Tasks of one node must not each plan with all that is free there. A part is left for the model and the program; what the
# user asks for comes later, and counts.
memory=${SLURM_MEM_PER_NODE:-$((${SLURM_MEM_PER_CPU:-0} * ${SLURM_CPUS_PER_TASK:-1}))} # in MiB, 0 if there is no limit
if [ "$memory" -gt 0 ]; then
    set -- --memory "$((memory * 3 / 5))M" "$@"
fi
"$experiment" "$@" --shard "$SLURM_ARRAY_TASK_ID/$shards" &
program=$!
wait "$program"
status=$?
while [ -n "$is_interrupted" ]; do # a signal ends `wait`, not the program
    is_interrupted=
    wait "$program"
    status=$?
done

if [ -n "$is_out_of_time" ] && [ "$status" -ne 0 ]; then
    scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"
fi
exit "$status"
