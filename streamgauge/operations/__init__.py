"""Commands for operators: status, report, dead letters, doctor, expire, clean."""
