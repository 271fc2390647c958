"""Named rules over programs: the engine, the table of rules, their analyses."""
