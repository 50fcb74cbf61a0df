"""From bytes to columns: files, tables and their quotes, header rows, JSON, cells and their units."""
