"""The Orders view: what another order of ranks would move."""
