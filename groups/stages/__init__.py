"""What ranks hold: layers of every pipeline stage, layout strings, experts, chunks, samples."""
