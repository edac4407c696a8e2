package explore

// inLine is a world in which attempts wait: two of them at a time, who ask each
// node twice at most.
func inLine(attempts int, change func(*Model)) Model {
	return world(attempts, func(m *Model) {
		m.Waits, m.Asks, m.Patience = true, 2, 3
		if change != nil {
			change(m)
		}
	})
}

// waitingRows are those of waiting in line and handing on.
func waitingRows() []Row {
	return []Row{
		{Name: "W1", What: "one node, who waits is handed the lock: as shipped",
			Model: inLine(3, func(m *Model) { m.Nodes = 1 })},
		{Name: "W2", What: "two nodes",
			Model: inLine(2, func(m *Model) { m.Nodes = 2 })},
		{Name: "W3", What: "three nodes",
			Model: inLine(2, func(m *Model) { m.Nodes, m.Asks = 3, 1 })},
	}
}
