"""Sessions that iterate, and the solvers made of them."""
