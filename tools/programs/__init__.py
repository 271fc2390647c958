"""Parts of tools/public_programs.py: data for the programs, one program's run, the comparison."""
