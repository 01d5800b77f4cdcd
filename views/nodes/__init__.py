"""The Nodes view: the groups that leave a node or an NVLink domain."""
