"""What moves between two layouts: weights (api, sides, transfer), and a cache (cache)."""
