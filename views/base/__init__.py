"""What all views share: the state of the page, links, inputs, refusals, endpoints' frame."""
