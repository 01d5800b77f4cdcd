"""The Nodes view: what leaves a node or an NVLink domain."""
