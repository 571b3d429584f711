"""Engines in plain Python, each as its paper has it; the compiled ones give the same bits."""
