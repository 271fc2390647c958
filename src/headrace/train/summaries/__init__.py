"""Summaries of TF 1: functions that make summary ops, and the writer of event files."""
