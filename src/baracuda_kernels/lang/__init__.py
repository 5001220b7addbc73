"""What kernel bodies are written in: vectors, vector functions, geometry, threads, and the way to machine code."""
