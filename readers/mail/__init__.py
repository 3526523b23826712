"""Mail and calendars to HTML."""
