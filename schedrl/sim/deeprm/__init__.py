"""The DeepRM cluster: one pool of several resources, a few visible job slots and a backlog behind them."""
