"""Data parallelism as each framework does it: what it holds, sends and keeps alive in a step."""

from .value import DataParallel
