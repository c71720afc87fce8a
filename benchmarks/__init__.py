"""Measurements of mrtr_flow beside its peers: `python -m benchmarks NAME`. Needs the extra `bench`."""
