"""How frameworks number their ranks, and which groups they make."""
