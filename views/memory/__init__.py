"""The Memory view: what each GPU holds, and whether it fits."""
