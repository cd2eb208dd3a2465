"""Experiments over HTTP: the service with its tokens and limits, and the clients that speak to it."""
