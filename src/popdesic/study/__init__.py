"""A study: configuration, sheets, validation, forecast, running, audit, resuming, records."""
