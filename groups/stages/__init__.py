"""Who holds what: layers of every pipeline stage, layout strings, experts, chunks, samples."""
