"""Commands for whoever runs it: status, report, dead letters, doctor, expire, clean."""
