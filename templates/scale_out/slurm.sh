#!/bin/bash
# Several nodes under Slurm: all but the last train, the last one samples with vLLM. NEVER RUN on a cluster so far.
#     sbatch slurm.sh
#     sbatch --nodes=2 --export=ALL,VLLM_NODES=0,CONFIG=config.yaml,ENGINE=accelerate/ddp.yaml slurm.sh
# The folder has to lie on a file system that all nodes see. A lost node ends the job; it is put back into the queue,
# and the same command goes on from the newest whole checkpoint. After the time limit it is not: sbatch it again.
# The server and the first training node talk both ways (ports 8000 and 51216), and trust whoever reaches them.
#
# CHANGE: the next lines for your cluster (its partition and account, too), ACTIVATE, and MODEL with CONFIG. With more
# processes the batch grows: processes x per_device_train_batch_size x gradient_accumulation_steps.
#SBATCH --job-name=grpo
##SBATCH --partition=...
##SBATCH --account=...
#SBATCH --nodes=3
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:8
#SBATCH --cpus-per-task=64
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%j.log

set -euo pipefail

ACTIVATE=${ACTIVATE:-}                           # the environment of both, for example /shared/env/bin/activate
CONFIG=${CONFIG:-config.8gpu.yaml}               # of train.py
ENGINE=${ENGINE:-accelerate/fsdp2.yaml}          # of accelerate
MODEL=${MODEL:-Qwen/Qwen2.5-7B-Instruct}         # the same as in CONFIG
GPUS=${GPUS:-8}                                  # of one node
SERVER_GPUS=${SERVER_GPUS:-4}                    # of the server's: they have to divide its heads (28 and 4); others idle
VLLM_NODES=${VLLM_NODES:-1}                      # 0: no server; the config then has use_vllm: false or colocate
MOST_RESTARTS=${MOST_RESTARTS:-5}                # after which somebody should look

if [[ -n $ACTIVATE ]]; then
    # shellcheck disable=SC1090
    source "$ACTIVATE"
fi
export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}  # srun does not take it over from sbatch, and a step had one CPU

mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
count=$(( ${#nodes[@]} - VLLM_NODES ))
if (( count < 1 )); then
    echo "Error: ${#nodes[@]} nodes and VLLM_NODES=$VLLM_NODES leave none to train on; ask for more --nodes." >&2
    exit 2
fi
trainers=$(IFS=,; echo "${nodes[*]:0:count}")
server_flags=()

if (( VLLM_NODES )); then
    server=${nodes[-1]}
    srun --nodes=1 --ntasks=1 --nodelist="$server" \
        trl vllm-serve --model "$MODEL" --tensor_parallel_size "$SERVER_GPUS" --host 0.0.0.0 --port 8000 &
    server_pid=$!
    trap 'kill "$server_pid" 2>/dev/null || true' EXIT
    server_flags=(--vllm_server_host "$server" --vllm_server_port 8000 --vllm_server_timeout 1200)
fi

# SLURM_PROCID is each node's number among those that train; the first is where they meet.
# shellcheck disable=SC2016
launch='accelerate launch --config_file "$1" --num_machines "$2" --num_processes "$3" --machine_rank "$SLURM_PROCID" \
    --main_process_ip "$4" --main_process_port 29500 --rdzv_backend static train.py --config "$5" "${@:6}"'

code=0
srun --nodes="$count" --ntasks="$count" --nodelist="$trainers" --kill-on-bad-exit=1 \
    bash -c "$launch" bash "$ENGINE" "$count" "$(( count * GPUS ))" "${nodes[0]}" "$CONFIG" "${server_flags[@]}" || code=$?

if (( code && ${SLURM_RESTART_COUNT:-0} < MOST_RESTARTS )); then
    echo "The training ended with $code; the job goes back into the queue."
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
