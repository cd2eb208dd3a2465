"""Pages for people: the experiments of a store in a browser. They decide nothing, and compute nothing of their own."""
