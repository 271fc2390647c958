"""The ops, a module per family. Importing this package defines all of them."""
