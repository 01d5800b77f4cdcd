"""The roles of a plan: their memory from moment to moment, what there is to say, the endpoint."""
