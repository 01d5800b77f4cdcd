"""Between the network and the page: limits on requests, and where work is done."""
