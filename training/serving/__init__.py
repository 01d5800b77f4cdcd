"""What a server of one model holds: weights, and a cache of keys and values of its requests."""

from .cache import KVCache, KVLayer, kv_cache

__all__ = ["KVCache", "KVLayer", "kv_cache"]
