"""The words of the page itself, and nouns that are counted."""

from __future__ import annotations

from .shapes import words

PAGE = {**words("collectives", "PAGE"), **words("page", "PAGE"), **words("pipeline", "PAGE")}

NOUNS: dict[str, tuple[str, str, str]] = {
    "gpu": ("GPU", "GPUs", "个 GPU"),
    "group": ("group", "groups", "个组"),
    "rank": ("rank", "ranks", "个 rank"),
    "node": ("node", "nodes", "个节点"),
    "host": ("host", "hosts", "台主机"),
    "file": ("file", "files", "个文件"),
    "microbatch": ("micro-batch", "micro-batches", "个 micro-batch"),
}
"""A noun in English, one and many, and with its counter in Chinese."""


def counted(number: int, noun: str, language: str) -> str:
    """A number with its noun.

    >>> counted(1, "group", "en"), counted(1024, "group", "en"), counted(2, "node", "zh")
    ('1 group', '1,024 groups', '2 个节点')
    """
    one, many, chinese = NOUNS[noun]
    if language == "zh":
        return f"{number:,} {chinese}"
    return f"{number:,} {one if number == 1 else many}"
