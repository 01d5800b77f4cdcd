"""The memory of a server: weights, and the KV cache of its requests."""

from .cache import KVCache, KVLayer, kv_cache

__all__ = ["KVCache", "KVLayer", "kv_cache"]
