"""Sessions: fetches and feeds, state, the plan cache, events."""
