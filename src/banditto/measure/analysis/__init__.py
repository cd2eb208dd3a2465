"""What an experiment taught: estimates with intervals whose coverage is proved (docs/analyse.md)."""
