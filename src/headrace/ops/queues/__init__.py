"""Queues, readers, staging areas and barriers: resources of a session that runs wait for."""
