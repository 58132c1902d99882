"""A study: configuration, sheets, checks, forecast, audit, resume."""
