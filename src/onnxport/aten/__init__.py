"""The captured program: ATen nodes, the passes over them, and the contract that these keep."""
