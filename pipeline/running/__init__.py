"""How queries are started, watched, restarted, stopped and reset."""
