#!/bin/bash
# Several nodes with Slurm: the last node samples with vLLM, all others train. NEVER RUN on a cluster so far.
#     sbatch slurm.sh
#     sbatch --nodes=2 --export=ALL,VLLM_NODES=0,CONFIG=config.yaml,ENGINE=accelerate/ddp.yaml slurm.sh
# The folder must be on a file system that all nodes can see. A lost node ends the job; Slurm queues it again, and the
# same command resumes from the newest complete checkpoint. After the time limit it is not queued: run sbatch again.
# The server and the first training node connect both ways (ports 8000 and 51216), and trust anyone who can reach them.
#
# CHANGE the next lines for your cluster (also partition and account), ACTIVATE, and MODEL together with CONFIG. More
# processes mean a larger batch: processes x per_device_train_batch_size x gradient_accumulation_steps.
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

ACTIVATE=${ACTIVATE:-}                           # environment of server and training, for example /shared/env/bin/activate
CONFIG=${CONFIG:-config.8gpu.yaml}               # config of train.py
ENGINE=${ENGINE:-accelerate/fsdp2.yaml}          # config of accelerate
MODEL=${MODEL:-Qwen/Qwen2.5-7B-Instruct}         # the same as in CONFIG
GPUS=${GPUS:-8}                                  # GPUs per node
SERVER_GPUS=${SERVER_GPUS:-4}                    # GPUs of the server; must divide its numbers of heads (28 and 4)
VLLM_NODES=${VLLM_NODES:-1}                      # 0: no server; then set use_vllm: false or vllm_mode: colocate
MOST_RESTARTS=${MOST_RESTARTS:-5}                # after that, check the log

if [[ -n $ACTIVATE ]]; then
    # shellcheck disable=SC1090
    source "$ACTIVATE"
fi
export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}  # srun does not inherit it from sbatch, so a step had one CPU

mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
count=$(( ${#nodes[@]} - VLLM_NODES ))
if (( count < 1 )); then
    echo "Error: ${#nodes[@]} nodes and VLLM_NODES=$VLLM_NODES leave none for training; request more --nodes." >&2
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

# SLURM_PROCID is each node's number among the training nodes, which connect to the first one.
# shellcheck disable=SC2016
launch='accelerate launch --config_file "$1" --num_machines "$2" --num_processes "$3" --machine_rank "$SLURM_PROCID" \
    --main_process_ip "$4" --main_process_port 29500 --rdzv_backend static train.py --config "$5" "${@:6}"'

code=0
srun --nodes="$count" --ntasks="$count" --nodelist="$trainers" --kill-on-bad-exit=1 \
    bash -c "$launch" bash "$ENGINE" "$count" "$(( count * GPUS ))" "${nodes[0]}" "$CONFIG" "${server_flags[@]}" || code=$?

if (( code && ${SLURM_RESTART_COUNT:-0} < MOST_RESTARTS )); then
    echo "Training ended with exit code $code; the job is queued again."
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
