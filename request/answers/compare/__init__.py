"""Two layouts side by side: their costs, a verdict in words, and the endpoint."""
