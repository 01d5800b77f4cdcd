"""Models from their config.json: fields, architectures as rows, layers and towers."""
