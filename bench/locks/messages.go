package locks

// messagesOf are the messages of Leasehold, sent by hand. Only Leasehold's own tests can
// compose them.
func messagesOf(n int) Kind {
	return Kind{
		Name: "messages-" + string(rune('0'+n)), Label: "Leasehold's messages by hand, " + nodes(n), Role: Floor, Engine: Redis, Nodes: n,
		Benchmark: "BenchmarkMessages/.*/.*/by-hand",
	}
}
