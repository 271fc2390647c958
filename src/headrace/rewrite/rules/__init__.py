"""The rewrite rules, a module per family; rule_table lists them in order."""
