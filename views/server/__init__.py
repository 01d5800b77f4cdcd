"""What stands between the network and the page: what is taken in, and where work is done."""
