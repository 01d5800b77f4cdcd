"""Numbers in, pictures out. A scene is computed first, as plain data; painters decide nothing."""
