package doctor

// Memory is what there is to say of a store in memory.
func Memory() []Finding {
	r := &report{}
	r.add(Info, MemoryOnly, "", "The locks are in the memory of one process and hold between its own goroutines only.")
	return r.sorted()
}
