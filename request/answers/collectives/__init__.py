"""What one group does together: what a page or a program asks of it, and the endpoint."""
