"""Checks of what figures rest on.

`leaks` plays two worlds that differ only in the future, `worlds` makes them, `samples` draws them for the
environments that there are. Such a test is metamorphic: nobody needs to know the right observation. What an
agent sees, may do and is asked up to a moment can't depend on what comes after it; what does is declared by
the environment (`schedrl.envs.declared`), or it is a leak.
"""
