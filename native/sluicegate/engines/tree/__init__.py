"""Engines whose leaves may be merged with a neighbour: a tree over pairs, and a tail that decides late."""
