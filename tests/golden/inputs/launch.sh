#!/bin/bash
#SBATCH --nodes=4
GPUS_PER_NODE=8
torchrun --nnodes $SLURM_NNODES --nproc-per-node $GPUS_PER_NODE pretrain_gpt.py \
  --tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 --num-layers 32 \
  --seq-length 4096 --micro-batch-size 1 --global-batch-size 256 --use-<b>bold</b> 3
