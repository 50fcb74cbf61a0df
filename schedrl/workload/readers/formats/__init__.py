"""A file per trace format; `google_events` and `accounting` are shared by two. Names: `readers.FORMATS`."""
