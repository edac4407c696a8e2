package doctor

// Memory returns the finding about a store in memory.
func Memory() []Finding {
	r := &report{}
	r.add(Info, MemoryOnly, "", "The locks are in the memory of one process and hold between its own goroutines only.")
	return r.sorted()
}
