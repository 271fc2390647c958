"""Input through queues: threads that fill them, producers of names and slices, batches."""
