"""Groups and ranks of a job as JSON, CSV and text, of a schema that has a version."""
