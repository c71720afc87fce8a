"""Edges: how a host's requests become `Call`s and rounds become its results."""
