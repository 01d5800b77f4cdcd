# ruff: noqa: RUF001
"""The words of the Step time view, and of what other views say of a step's time."""

from __future__ import annotations

from .shapes import Text

ESTIMATE: dict[str, Text] = {
    "title": Text("How long does a step take?", "一步要多久？"),
    "body": Text(
        "An estimate from physics with a few constants for each GPU, fitted to public runs of "
        "other "
        "people, and the interval that holds nine of ten real runs.",
        "按物理规律估算，每种 GPU 只有少数几个常数，由他人公开的实测拟合；"
        "区间覆盖十次实测中的九次。",
    ),
    "about": Text("about {about}", "约 {about}"),
    "step": Text("A step takes about {about}.", "一步约需 {about}。"),
    "more": Text("Parts and measured runs", "组成与实测"),
    "job": Text(
        "for a step of {model} on {gpus} GPUs ({cluster}), {batch} samples of {tokens} tokens.",
        "这是 {model} 的一步，{gpus} 个 GPU（{cluster}），{batch} 个样本，每个 {tokens} 个 token。",
    ),
    "close": Text(
        "Public runs on such GPUs, with such models, are near.",
        "有相近的公开实测：同类 GPU、同类模型。",
    ),
    "far": Text(
        "No public run is near ({lacks}), so the interval is wider.",
        "没有相近的公开实测（{lacks}），因此区间更宽。",
    ),
    "lacks_gpu": Text("on these GPUs", "这种 GPU"),
    "lacks_model": Text("of such a model", "这类模型"),
    "lacks_size": Text("of such a size", "这样的规模"),
    "lacks_offload": Text("with states in host memory", "状态放在主机内存"),
    "lacks_gpus": Text("on so many GPUs", "这么多 GPU"),
    "part_compute": Text("Computation", "计算"),
    "part_bubble": Text("Idle in the pipeline", "流水线空闲"),
    "part_waits": Text("Waiting for", "等待"),
    "part_optimizer": Text("Optimizer", "优化器"),
    "part_offload": Text("States in host memory", "主机内存中的状态"),
    "part_host": Text("Host launches kernels", "主机启动核函数"),
    "cloud_title": Text("You are here, among measured runs", "在实测中的位置"),
    "cloud_body": Text(
        "Each dot is a run that somebody published; blue ones ran on GPUs like these, ringed ones "
        "are nearest. The red line is the interval.",
        "每个点是一次公开的实测；蓝色为同类 GPU，带圈的最相近。红线为区间。",
    ),
    "cloud_label": Text(
        "Measured runs by size of the model and speed of a GPU; the layout on screen: {about}.",
        "按模型规模和每 GPU 速度排列的实测；当前布局：{about}。",
    ),
    "cloud_across": Text("parameters that a token passes through", "每个 token 经过的参数"),
    "cloud_up": Text("TFLOP/s a GPU", "每 GPU TFLOP/s"),
    "cloud_here": Text("you are here", "你在这里"),
    "nearest_title": Text("Nearest measured runs", "最相近的实测"),
    "column_part": Text("Part", "组成"),
    "column_seconds": Text("Seconds", "时间"),
    "column_share": Text("Share", "占比"),
    "column_model": Text("Model", "模型"),
    "column_layout": Text("Layout · samples × tokens", "布局 · 样本 × token"),
    "column_gpus": Text("GPUs", "GPU"),
    "column_numbers": Text("Numbers", "数值格式"),
    "column_measured": Text("Measured step", "实测一步"),
    "column_source": Text("Source", "来源"),
    "errors_title": Text("How wrong it is", "误差有多大"),
    "errors_body": Text(
        "Of each group of public runs: by how much the estimate is off in the median and at the "
        "90th percentile, how many runs lie in the interval, and the same error when the fit has "
        "not seen any run of that kind of source.",
        "各组公开实测：估算误差的中位数与第 90 百分位、落在区间内的比例，"
        "以及拟合未见过该类来源任何实测时的误差。",
    ),
    "column_group": Text("Runs of", "来源"),
    "column_runs": Text("Runs", "次数"),
    "column_error": Text("Error", "误差"),
    "column_error90": Text("90th", "第 90 百分位"),
    "column_cover": Text("In the interval", "区间内"),
    "column_unseen": Text("Unseen", "未见过"),
    "column_unseen90": Text("Unseen, 90th", "未见过，第 90 百分位"),
    "limit_1": Text(
        "The same layout in two releases of one framework differs by up to 35 % (DeepSeek-V3 on "
        "GB300 in Megatron-Bridge): the estimate knows no releases.",
        "同一布局在同一框架的两个版本中相差可达 35%（Megatron-Bridge 中 GB300 上的 DeepSeek-V3）"
        "：估算不区分版本。",
    ),
    "limit_2": Text(
        "Whether tensor or expert messages overlap with computation, and whether kernels are "
        "launched as one graph, is a flag that tables do not print.",
        "张量和专家通信是否与计算重叠、核函数是否以计算图启动，取决于表格未给出的选项。",
    ),
    "limit_3": Text(
        "Routing to experts is taken to be even.",
        "假定专家路由均匀。",
    ),
    "limit_4": Text(
        "nanotron's runs (the Playbook) stall by chance: their repeats differ by a factor of 1.7.",
        "nanotron 的实测（Playbook）会随机停顿：重复运行相差 1.7 倍。",
    ),
}
