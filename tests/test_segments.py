"""Whether expert groups stay in a rack, from a job's own file: Slurm, Kueue, Volcano."""

import pytest

from formats.launch import parse
from formats.launch.meaning.segments import segments_of
from formats.launch.sayings import read

SIZES = "--tensor-model-parallel-size 1 --expert-model-parallel-size {ep} --num-experts 256"
SLURM = """#!/bin/bash
#SBATCH --nodes=32
#SBATCH --ntasks-per-node=4
#SBATCH --segment={segment}
srun python -u pretrain_gpt.py """
KUEUE = """apiVersion: batch/v1
kind: Job
spec:
  parallelism: 32
  template:
    metadata:
      annotations:
        {annotations}
    spec:
      containers:
      - name: c
        command: [torchrun, --nproc-per-node=4, pretrain_gpt.py, {words}]
        resources: {{limits: {{nvidia.com/gpu: 4}}}}
"""
VOLCANO = """apiVersion: batch.volcano.sh/v1alpha1
kind: Job
spec:
  networkTopology:
    mode: {mode}
    highestTierAllowed: 2
  tasks:
    - name: worker
      replicas: 32
      partitionPolicy:
        totalPartitions: 4
        partitionSize: 8
        networkTopology:
          mode: hard
          highestTierName: rack
      template:
        spec:
          containers:
          - command: [torchrun, --nnodes=32, --nproc-per-node=4, pretrain_gpt.py, {words}]
"""


def told(text: str) -> list[tuple[str, object]]:
    notes = [note for note in parse(text).missing if note.code.startswith("segment")]
    return [(note.code, note.facts.get("leave") or note.facts["segment"]) for note in notes]


@pytest.mark.parametrize(
    ("segment", "ep", "note"),
    [
        (16, 64, ("segment-keeps", 16)),
        (8, 64, ("segment-cuts", 2)),
        (12, 64, ("segment-does-not-divide", 12)),
        (16, 4, ("segment-decides-nothing", 16)),
        (16, 128, ("segment-cuts-any", 1)),
    ],
)
def test_an_expert_group_of_sixteen_nodes_stays_in_segments_of_sixteen(segment, ep, note):
    text = SLURM.format(segment=segment) + SIZES.format(ep=ep)
    assert told(text) == [note]


def test_the_size_that_works_is_named():
    (note,) = [
        note
        for note in parse(SLURM.format(segment=4) + SIZES.format(ep=32)).missing
        if note.code == "segment-cuts"
    ]
    assert (note.facts["works"], note.facts["wide"], note.facts["groups"]) == (8, 8, 4)


def in_kueue(*annotations: str, ep: int = 64) -> str:
    words = ", ".join(SIZES.format(ep=ep).split())
    own = "\n        ".join(f"kueue.x-k8s.io/podset-{line}" for line in annotations)
    return KUEUE.format(annotations=own, words=words)


SLICE = ('slice-required-topology: "cloud.provider.com/topology-rack"', 'slice-size: "16"')


def test_a_slice_of_kueues_pods_is_a_run_of_nodes():
    text = in_kueue("required-topology: cloud.provider.com/topology-block", *SLICE)
    assert parse(text).job().nodes == 32
    assert told(text) == [("segment-keeps", 32), ("segment-keeps", 16)]
    assert told(in_kueue(*SLICE, ep=128)) == [("segment-cuts-any", 1)]
    wish = in_kueue("preferred-topology: cloud.provider.com/topology-rack", ep=128)
    assert told(wish) == [("segment-wishes", 32)]


def test_layers_of_slices_are_each_told():
    layers = '[{"topology": "block", "size": 32}, {"topology": "rack", "size": 8}]'
    text = in_kueue(f"slice-required-topology-constraints: '{layers}'")
    assert [(one.nodes, one.place) for one in segments_of(read(text))] == [
        (32, "block"),
        (8, "rack"),
    ]
    assert told(text) == [("segment-keeps", 32), ("segment-cuts", 2)]


def test_a_partition_of_volcanos_task_is_a_run_of_nodes():
    words = ", ".join(SIZES.format(ep=32).split())
    for mode, code in (("hard", "segment-keeps"), ("soft", "segment-wishes")):
        text = VOLCANO.format(mode=mode, words=words)
        found = [(one.nodes, one.place) for one in segments_of(read(text))]
        assert found == [(0, "tier 2"), (8, "rack")]
        assert told(text) == [(code, 32), ("segment-keeps", 8)]


def test_a_text_without_a_placement_says_nothing_of_one():
    assert told("srun -N 32 --ntasks-per-node 4 pretrain_gpt.py " + SIZES.format(ep=64)) == []
