"""From a kernel body to machine code and to a launch on several threads."""
