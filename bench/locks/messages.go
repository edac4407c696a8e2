package locks

// messagesOf is the messages that Leasehold's client sends, without the client. Only the tests
// of redisstore can make them.
func messagesOf(n int) Kind {
	return Kind{
		Name: "messages-" + string(rune('0'+n)), Label: "Leasehold's messages by hand, " + nodes(n), Role: Floor, Engine: Redis, Nodes: n,
		Benchmark: "BenchmarkMessages/.*/.*/by-hand",
	}
}
