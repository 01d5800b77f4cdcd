# ruff: noqa: RUF001
"""The words around the views: header, sections, column, notices."""

from __future__ import annotations

from .shapes import Text

SECTIONS: dict[str, Text] = {
    "see": Text("See", "看布局"),
    "step": Text("Step", "看一步"),
    "choose": Text("Choose", "选布局"),
    "run": Text("Run", "跑起来"),
}

SHELL: dict[str, Text] = {
    "skip": Text("Skip to the picture", "跳到图"),
    "gpus_chip": Text("{world} GPUs · {nodes} × {gpus}", "{world} 个 GPU · {nodes} × {gpus}"),
    "no_layout": Text("no layout yet", "尚无可用布局"),
    "examples": Text("Examples", "示例"),
    "tools": Text("Examples, links, language", "示例、链接与语言"),
    "job": Text("The job", "作业"),
    "paste_script": Text("Paste a script", "粘贴脚本"),
    "copy_link": Text("Copy link", "复制链接"),
    "sections": Text("Sections", "栏目"),
    "views": Text("Views", "视图"),
    "save": Text("Save", "保存"),
    "save_slide": Text("Slide, 16:9", "幻灯片 16:9"),
    "save_picture": Text("All pictures", "全部图片"),
    "published": Text("{count} published", "{count} 个公开布局"),
    "own_layout": Text("Your own layout", "自定布局"),
    "size_nodes": Text("Nodes", "节点"),
    "size_gpus_per_node": Text("GPUs per node", "每节点 GPU"),
    "size_tp": Text("Tensor (TP)", "张量（TP）"),
    "size_pp": Text("Pipeline (PP)", "流水线（PP）"),
    "size_cp": Text("Context (CP)", "上下文（CP）"),
    "size_ep": Text("Expert (EP)", "专家（EP）"),
    "size_dp": Text("Data (DP)", "数据（DP）"),
    "size_edp": Text("Expert data (EDP)", "专家数据（EDP）"),
    "slider": Text("{label}, slider", "{label}，滑块"),
    "fold_experts": Text("Experts (EP, ETP)", "专家（EP、ETP）"),
    "fold_order": Text("Framework and order", "框架与顺序"),
    "fold_groups": Text("Groups shown", "显示哪些组"),
    "batch_chip": Text("{model} · {batch} × {tokens} tokens", "{model} · {batch} × {tokens} token"),
    "model_chip": Text("Model: not known yet", "模型：尚未知"),
    "fold_model": Text("Model and batch", "模型与批量"),
    "about": Text("About {label}", "关于{label}"),
    "layout_controls": Text("Layout", "布局"),
    "whole": Text("Open in the playground", "在演示页中打开"),
    "waiting": Text(
        "The server does not answer. Your change is kept and sent when it is back.",
        "服务器没有回应。你的修改已保留，恢复后会自动发送。",
    ),
    "long": Text(
        "Too long for the page: 600,000 characters in all. The command line takes more.",
        "文本对页面来说太长：合计最多 600,000 个字符。命令行可以处理更长的文本。",
    ),
    "busy": Text(
        "The server is busy with heavy requests. Trying again.",
        "服务器正忙于繁重的请求，正在重试。",
    ),
    "family_llama": Text("Llama", "Llama"),
    "family_deepseek": Text("DeepSeek", "DeepSeek"),
    "family_qwen": Text("Qwen", "Qwen"),
    "family_mixtral": Text("Mixtral", "Mixtral"),
    "family_megatron": Text("Megatron-LM and NVIDIA", "Megatron-LM 与 NVIDIA"),
    "family_other": Text("Others", "其他"),
}
