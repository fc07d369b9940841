"""HTTP: the proxies, certificates and time limits of every request."""
