"""Layouts that papers, logs and guides publish, as data: what each source says and what it leaves.

``stated`` holds only what the source states, in its numbers. ``assumed`` holds what drawing needs
and the source does not state: worked out from what it states, or the plainest choice where it says
nothing. A size in neither is 1; gpus_per_node in neither is 8, etp in neither is not given.

    gpus, nodes, gpus_per_node       the cluster (nodes or gpus may be left to be worked out)
    tp, cp, pp, ep, etp, dp          sizes of the axes
    framework                        an id of `conventions`: whose order numbers the ranks
    anything else                    the model and its batch; account_for_embedding 1 takes one
                                     layer off the first stage, account_for_loss off the last

The numbers of experts are those of the models' own published configurations (num_experts,
n_routed_experts), which the sources of the layouts do not repeat.

Left out, because they state too little to draw:

    gpt3-175b-1024a100   an estimate of training time (arXiv:2104.04473 section 5.1), no tp or pp
    deepseek-v2          pp and ep, but no number of GPUs (arXiv:2405.04434 section 3.1)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

Value = int | str


@dataclass(frozen=True)
class Published:
    """One published layout."""

    name: str
    family: str
    source: tuple[str, ...]
    stated: Mapping[str, Value]
    assumed: Mapping[str, Value] = field(default_factory=dict)
    note: str = ""


def _rows(table: str) -> Iterator[tuple[str, dict[str, Value]]]:
    """The rows of a table by their first column; a dash is a number the source does not state."""
    header, *lines = (line.split() for line in table.strip().splitlines())
    for name, *cells in lines:
        yield name, {key: int(cell) for key, cell in zip(header[1:], cells) if cell != "-"}


def _playground() -> Iterator[tuple[str, Published]]:
    yield (
        "playground-16",
        Published(
            name="Playground",
            family="Playground",
            source=(
                "Megatron-LM parallel group playground (Hugging Face Space), two nodes of eight",
            ),
            stated={"gpus": 16, "nodes": 2, "gpus_per_node": 8, "framework": "megatron"},
            assumed={"tp": 2, "pp": 2},
            note="Two nodes of eight were fixed; the sizes were sliders.",
        ),
    )


MEGATRON_2021 = """
id      attention_heads hidden layers tp pp gpus global_batch micro_batch layers_per_virtual_stage
1.7b                 24   2304     24  1  1   32          512          16                        -
3.6b                 32   3072     30  2  1   64          512          16                        -
7.5b                 32   4096     36  4  1  128          512          16                        -
18.4b                48   6144     40  8  1  256         1024           8                        -
39.1b                64   8192     48  8  2  512         1536           4                        -
76.1b                80  10240     60  8  4 1024         1792           2                        5
145.6b               96  12288     80  8  8 1536         2304           2                        5
310.1b              128  16384     96  8 16 1920         2160           1                        3
529.6b              128  20480    105  8 35 2520         2520           1                        1
1008.0b             160  25600    128  8 64 3072         3072           1                        -
"""

MEGATRON_2021_FIGURES = """
id          attention_heads  hidden  layers  tp  pp  gpus  micro_batch  layers_per_virtual_stage
fig12-175b               96   12288      96   8  12    96            1                         2
fig17-145b               96   12288      80   8  16   128            1                         -
fig16-91b               128   15360      32   8   8    64            -                         -
"""

_SC21 = "Megatron-LM d98e8a6 examples/academic_paper_scripts/sc21/"


def _megatron_2021() -> Iterator[tuple[str, Published]]:
    tables = (
        "arXiv:2104.04473 Table 1, section 5.1, eq. (2)",
        "micro_batch and layers_per_virtual_stage: NVIDIA/" + _SC21 + "run_table_1.sh",
    )
    scripts = {
        "fig12-175b": "run_figure_12.sh, run_figure_18.sh; paper sections 5.3.2, 5.7",
        "fig17-145b": "run_figure_17.sh; paper section 5.6",
        "fig16-91b": "run_figure_16.sh; paper section 5.5",
    }
    framework: dict[str, Value] = {"framework": "megatron"}
    cluster: dict[str, Value] = {"vocab": 51200, "seq": 2048, "gpus_per_node": 8}
    for size, row in _rows(MEGATRON_2021):
        name = f"Megatron-LM 2021, GPT {size.upper()}"
        stated = {**row, **cluster, **framework}
        yield (
            f"megatron2021-{size}",
            Published(name, "Megatron-LM 2021", tables, stated, _chunks(row)),
        )
    for key, row in _rows(MEGATRON_2021_FIGURES):
        figure, size = key.split("-")
        number = {"fig12": "12/18"}.get(figure, figure[3:])
        model = "GPT-3 175B" if size == "175b" else f"GPT {size.upper()}"
        yield (
            f"megatron2021-{key}",
            Published(
                f"Megatron-LM 2021 Fig. {number}, {model}",
                "Megatron-LM 2021",
                ("arXiv:2104.04473", _SC21 + scripts[key]),
                {**row, **framework},
                _chunks(row),
            ),
        )


def _chunks(row: Mapping[str, Value]) -> dict[str, Value]:
    """The chunks of a stage, from the layers of one chunk where these are stated."""
    if "layers_per_virtual_stage" not in row:
        return {}
    return {"vpp": int(row["layers"]) // int(row["pp"]) // int(row["layers_per_virtual_stage"])}


RECOMPUTATION_2022 = """
id   attention_heads hidden layers vocab  seq tp pp dp gpus global_batch micro_batch vpp
22b               64   6144     48 51200 2048  8  1  1    8            4           4   -
175b              96  12288     96 51200 2048  8  8  1   64           64           1   3
530b             128  20480    105 51200 2048  8 35  1  280          280           1   3
1t               160  25600    128 51200 2048  8 64  1  512          512           1   -
"""


def _recomputation_2022() -> Iterator[tuple[str, Published]]:
    family = "Activation recomputation 2022"
    names = {"22b": "22B", "175b": "175B (GPT-3)", "530b": "530B (MT-NLG)", "1t": "1T"}
    framework: dict[str, Value] = {"framework": "megatron"}
    for key, row in _rows(RECOMPUTATION_2022):
        yield (
            f"korthikanti-{key}",
            Published(
                f"Reducing Activation Recomputation, {names[key]}",
                family,
                ("arXiv:2205.05198 Tables 3 and 5, section 6",),
                row,
                framework,
                "These runs have no data parallelism by design.",
            ),
        )
    yield (
        "korthikanti-530b-dp8",
        Published(
            "530B scaled to 8-way data parallel",
            family,
            ("arXiv:2205.05198 section 6.3",),
            {"tp": 8, "pp": 35, "dp": 8, "gpus": 2240},
            {"layers": 105, "hidden": 20480, "attention_heads": 128, **framework},
            "The model is taken to be the 530B of the same paper's tables.",
        ),
    )


def _before_2024() -> Iterator[tuple[str, Published]]:
    for nodes in (280, 350, 420):
        yield (
            f"mtnlg-530b-{nodes}",
            Published(
                "MT-NLG 530B",
                "MT-NLG 530B",
                ("arXiv:2201.11990 sections 2.2-2.4, 3.2",),
                {
                    **{"layers": 105, "hidden": 20480, "attention_heads": 128, "seq": 2048},
                    **{"tp": 8, "pp": 35, "nodes": nodes, "gpus_per_node": 8},
                    "global_batch": 1920,
                },
                {"framework": "megatron-deepspeed"},
                f"One of three sizes that were timed; {nodes} of the cluster's 560 nodes. Read "
                "from quotations, not in the paper itself.",
            ),
        )
    yield (
        "bloom-176b",
        Published(
            "BLOOM 176B",
            "BLOOM",
            (
                "bigscience-workshop/bigscience 9e64ede train/tr11-176B-ml/README.md (Hardware, "
                "Replica setup, Global batch size)",
                "train/tr11-176B-ml/tr11-176B-ml.slurm (TP_SIZE, PP_SIZE, NHIDDEN, NLAYERS, "
                "NHEADS)",
            ),
            {
                **{"layers": 70, "hidden": 14336, "attention_heads": 112, "seq": 2048},
                **{"tp": 4, "pp": 12, "dp": 8, "gpus": 384, "nodes": 48, "gpus_per_node": 8},
                **{"micro_batch": 2, "global_batch": 2048},
            },
            {
                "framework": "megatron-deepspeed",
                **{"account_for_embedding": 1, "account_for_loss": 1},
            },
            "Moved to 24 nodes on 2022-07-04, with dp 4 then. 70 layers and both embeddings make "
            "six for each of 12 stages.",
        ),
    )
    yield (
        "glm-130b",
        Published(
            "GLM-130B",
            "GLM-130B",
            (
                "THUDM/GLM-130B 212215c logs/main-log-en.md (MP=4, PP=8; 96 nodes, "
                "BSZ=176*24=4224)",
                "docs/low-resource-inference.md",
                "arXiv:2210.02414 section 2.3",
            ),
            {
                **{"layers": 70, "hidden": 12288, "ffn_hidden": 32768, "attention_heads": 96},
                **{"seq": 2048, "global_batch": 4224, "framework": "deepspeed"},
                **{"tp": 4, "pp": 8, "nodes": 96, "gpus_per_node": 8},
            },
            {"account_for_embedding": 1, "account_for_loss": 1},
            "The first and the last stage hold one layer less: 9 x 8 - 2 = 70.",
        ),
    )
    yield (
        "opt-175b",
        Published(
            "OPT-175B",
            "OPT-175B",
            (
                "facebookresearch/metaseq f7ffa5f projects/OPT/download_opt175b.md (124 hosts, "
                "992 files, 8x tensor parallelism)",
                'metaseq/launcher/opt_job_constants.py ("175b": 96 layers, 12288, 96 heads, '
                "model_parallel 8, 2.0M tokens)",
            ),
            {
                **{"layers": 96, "hidden": 12288, "attention_heads": 96},
                **{"tp": 8, "gpus": 992, "nodes": 124, "gpus_per_node": 8},
            },
            {"framework": "fairscale"},
            "No pipeline is named. Weights are fully sharded over the 124 ranks of one tensor "
            "parallel index.",
        ),
    )
    yield (
        "palm-540b",
        Published(
            "PaLM 540B",
            "PaLM 540B",
            ("arXiv:2204.02311 section 4",),
            {"gpus": 6144, "tp": 12, "fsdp": 256, "pods": 2},
            {"gpus_per_node": 4, "framework": "palm"},
            "TPU v4 chips, four a host; tp is the paper's model axis. dp is 256 fully sharded "
            "times two pods; there is no pipeline. Inside a pod chips are linked directly, "
            "whatever their host.",
        ),
    )


LLAMA_3 = """
row     seq  tp  cp  pp   dp   gpus  batch_per_dp
1      8192   8   1  16   64   8192            32
2      8192   8   1  16  128  16384            16
3    131072   8  16  16    8  16384            16
"""


def _llama_3() -> Iterator[tuple[str, Published]]:
    shared: dict[str, Value] = {
        **{"layers": 126, "hidden": 16384, "ffn_hidden": 53248, "attention_heads": 128},
        **{"kv_heads": 8, "gpus_per_node": 8, "framework": "llama3"},
    }
    for key, row in _rows(LLAMA_3):
        batch = int(row["dp"]) * int(row["batch_per_dp"])
        yield (
            f"llama3-405b-{key}",
            Published(
                f"Llama 3 405B, Table 4 row {key}",
                "Llama 3",
                ("arXiv:2407.21783v3 Table 4, Fig. 5, section 3.3.2, Table 3",),
                {**row, **shared},
                {"global_batch": batch, "account_for_embedding": 1, "account_for_loss": 1},
                "Version 1 and the HTML copies print dp 4 in this row; only 8 makes 16,384 GPUs."
                if key == "3"
                else "",
            ),
        )


NEMOTRON_4 = """
gpus    dp  global_batch  tp  pp
1536    16           768   8  12
3072    32          1536   8  12
6144    64          2304   8  12
"""


def _since_2024() -> Iterator[tuple[str, Published]]:
    yield (
        "deepseek-v3",
        Published(
            "DeepSeek-V3 671B",
            "DeepSeek-V3",
            ("arXiv:2412.19437v2 sections 3.1, 3.2, 3.2.2",),
            {
                **{"gpus": 2048, "gpus_per_node": 8, "tp": 1, "pp": 16, "ep": 64},
                "routed_experts_per_token": 8,
            },
            {"experts": 256, "framework": "megatron"},
            "No dp is stated: 2048 / 16 for dense weights, 2 for experts. An ep group spans "
            "eight nodes.",
        ),
    )
    yield (
        "kimi-k2",
        Published(
            "Kimi K2 1T",
            "Kimi K2",
            ("arXiv:2507.20534 section 2.4.2 (Parallelism for Model Scaling)",),
            {"pp": 16, "ep": 16, "gpus_per_node": 8},
            {"nodes": 32, "gpus": 256, "experts": 384, "framework": "megatron"},
            "One model parallel group of 256 GPUs, not the whole job: any multiple of 32 nodes "
            "may train.",
        ),
    )
    for gpus, row in _rows(NEMOTRON_4):
        yield (
            f"nemotron4-340b-{gpus}",
            Published(
                "Nemotron-4 340B",
                "Nemotron-4",
                ("arXiv:2406.11704 section 2.3, Tables 1 and 2",),
                {
                    **{"layers": 96, "hidden": 18432, "attention_heads": 96, "kv_heads": 8},
                    **{"seq": 4096, "vocab": 256000, "gpus_per_node": 8},
                    **row,
                    "gpus": int(gpus),
                },
                {"framework": "megatron"},
                "Interleaved, but the number of chunks is not stated.",
            ),
        )
    yield (
        "falcon-180b",
        Published(
            "Falcon-180B",
            "Falcon",
            ("tiiuae/falcon-180B model card, Training Procedure",),
            {"gpus": 4096, "tp": 8, "pp": 8, "dp": 64},
            {"framework": "megatron"},
        ),
    )


FOLDING = """
id                             seq  tp  cp  pp  ep  etp  gpus  gpus_per_node  global_batch
mixtral-8x22b-mcore           4096   2   1   8   4    -   128              8           256
mixtral-8x22b-folded          4096   2   1   8   8    1   128              8           256
qwen2-57b-a14b-mcore          4096   2   1   4   4    -    64              8           256
qwen2-57b-a14b-folded         4096   2   1   4   4    1    64              8           256
mixtral-8x22b-g8t8-mcore      4096   2   1   8   8    -   128              8           256
mixtral-8x22b-g8t8-folded     4096   4   1   8   8    1   128              8           256
llama3-8x70b-mcore            4096   8   1   8   4    -   256              8           256
llama3-8x70b-folded           4096   8   1  16   8    -   256              8           256
mixtral-ctx16k               16384   2   4   8   8    1   128              -          1024
mixtral-ctx32k               32768   2   8   8   8    1   256              -           512
mixtral-ctx64k               65536   4   8   8   8    1   512              -           256
mixtral-ctx128k             131072   8   8   8   8    1  1024              -           128
"""

FOLDED_MODELS = {
    "mixtral-8x22b": ("Mixtral-8x22B", 8),
    "qwen2-57b-a14b": ("Qwen2-57B-A14B", 64),
    "mixtral-8x22b-g8t8": ("Mixtral-8x22B-G8T8", 0),
    "llama3-8x70b": ("Llama3-8x70B", 8),
    "mixtral": ("Mixtral-8x22B", 8),
}
"""Name and number of experts, 0 where not known here."""


def _folding() -> Iterator[tuple[str, Published]]:
    for key, row in _rows(FOLDING):
        model, method = key.rsplit("-", 1)
        name, experts = FOLDED_MODELS[model]
        by_context = method.startswith("ctx")
        method = {"mcore": "MCore", "folded": "MCore w/ Folding"}.get(
            method, f"{method[3:].upper()} context"
        )
        framework: dict[str, Value] = {"framework": "megatron"}
        stated, assumed = (row, dict(framework)) if by_context else ({**row, **framework}, {})
        if experts:
            assumed["experts"] = experts
        note = ""
        if key == "llama3-8x70b-folded":
            assumed["etp"] = 1
            note = "The etp of this row is blank in the copy read; tp 8 would not fit, 1 does."
        elif "etp" not in row:
            note = "etp is not stated, which is Megatron's etp = tp."
        yield (
            f"folding-{key}",
            Published(
                f"MoE Parallel Folding, {name}, {method}",
                "MoE Parallel Folding",
                (
                    "arXiv:2504.14960 Table 5"
                    if by_context
                    else "arXiv:2504.14960 Table 3 (and Table 1)",
                ),
                stated,
                assumed,
                note,
            ),
        )


BRIDGE = """
id                              seq  tp  cp  pp  ep  gpus  global_batch  micro_batch  vpp
deepseekv3-dgx-gb300-256       4096   1   1   2  32   256          4096            1    8
deepseekv3-dgx-gb200-256       4096   1   1   4  64   256          4096            1    4
qwen3_235b_a22b-dgx-gb300-256  4096   1   1   4  32   256          8192            2   12
qwen3_235b_a22b-dgx-gb200-256  4096   1   1   8  32   256          8192            1    3
qwen3_30b_a3b-dgx-gb300-8      4096   1   1   1   8     8           512            8    -
gpt-oss-120b-dgx-gb200-64      4096   1   1   1  64    64          1280            4    -
llama3.1_405b-dgx-h100-1024    8192   8   2   8   -  1024          1536            1    8
llama3_70b-dgx-h100-64         8192   4   1   8   -    64           256            1    5
qwen3_235b_a22b-dgx-h100-256   4096   2   1   8  32   256          8192            1    4
"""

BRIDGE_MODELS = {
    "deepseekv3": ("DeepSeekV3", 256),
    "qwen3_235b_a22b": ("Qwen3_235B_a22B", 128),
    "qwen3_30b_a3b": ("Qwen3_30B_a3B", 128),
    "gpt-oss-120b": ("GPT OSS 120B", 128),
    "llama3.1_405b": ("LLAMA3.1_405B", 0),
    "llama3_70b": ("LLAMA3_70B", 0),
}
"""Name and number of experts, 0 for a dense model."""


def _bridge() -> Iterator[tuple[str, Published]]:
    page = "NVIDIA-NeMo/Megatron-Bridge 067f987 docs/performance-summary"
    for key, row in _rows(BRIDGE):
        model, rest = key.split("-dgx-")
        system = rest.split("-")[0].upper()
        name, experts = BRIDGE_MODELS[model]
        archived = {"llama3.1_405b": "26.06"}.get(model, "26.04.01") if system == "H100" else ""
        source = f"{page}-archive.md, {archived}" if archived else f"{page}.md, 26.08"
        assumed: dict[str, Value] = {"experts": experts} if experts else {}
        note = ""
        if system != "H100":
            assumed["gpus_per_node"] = 4
            note = "Four GPUs a tray; NVLink reaches 72 of them, over 18 trays."
        if int(row["tp"]) > 1 and experts:
            assumed["etp"] = 1
            note = "etp is not stated: tp would not fit, 1 does."
        yield (
            f"bridge-{key}",
            Published(
                f"Megatron-Bridge performance summary {archived or '26.08'}, {name} on "
                f"DGX-{system}",
                "Megatron-Bridge",
                (f"{source} NeMo container",),
                {**row, "framework": "megatron"},
                assumed,
                note,
            ),
        )


GUIDE = """
id                tp  cp  pp  ep  gpus
llama-3-8b         1   2   1   1     8
llama-3-70b        4   2   4   1    64
llama-3.1-405b     8   2   8   1  1024
mixtral-8x7b       1   1   4   8    64
mixtral-8x22b      4   1   4   8   256
deepseek-v3-671b   2   1  16  64  1024
"""

GUIDE_MODELS = {
    "llama-3-8b": ("LLaMA-3 8B", 0),
    "llama-3-70b": ("LLaMA-3 70B", 0),
    "llama-3.1-405b": ("LLaMA-3.1 405B", 0),
    "mixtral-8x7b": ("Mixtral 8x7B", 8),
    "mixtral-8x22b": ("Mixtral 8x22B", 8),
    "deepseek-v3-671b": ("DeepSeek-V3 671B", 256),
}
"""Name and number of experts, 0 for a dense model."""


def _guide() -> Iterator[tuple[str, Published]]:
    for key, row in _rows(GUIDE):
        name, experts = GUIDE_MODELS[key]
        assumed: dict[str, Value] = {"experts": experts} if experts else {}
        note = "A recommendation, not a run."
        if key == "deepseek-v3-671b":
            assumed["etp"] = 1
            note += " etp is not stated: tp would not fit, 1 does."
        yield (
            f"mcore-guide-{key}",
            Published(
                f"Megatron Core parallelism guide, {name}",
                "Megatron Core guide",
                (
                    "NVIDIA/Megatron-LM d98e8a6 docs/user-guide/parallelism-guide.md "
                    "(Parallelism Selection Guide)",
                ),
                {**row, "framework": "megatron"},
                assumed,
                note,
            ),
        )


_ALL = (
    _playground,
    _megatron_2021,
    _recomputation_2022,
    _before_2024,
    _llama_3,
    _since_2024,
    _folding,
    _bridge,
    _guide,
)

PUBLISHED: dict[str, Published] = {key: row for made in _ALL for key, row in made()}
"""Every published layout by a stable id."""
