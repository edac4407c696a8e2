package etcdtest

import "context"

// LeaderFaults harms the leader in turns: it is killed, paused, and cut off from the other members.
// goesOn waits until all clients go on. It is called when there is another leader, and again when the
// old one is back.
func (c *Cluster) LeaderFaults(ctx context.Context, goesOn func(what string)) error {
	for _, f := range []struct {
		name       string
		fail, mend func(leader int) error
	}{
		{name: "killed", fail: func(i int) error { c.Members[i].Kill(); return nil }, mend: func(i int) error { return c.Members[i].Restart() }},
		{name: "paused", fail: func(i int) error { return c.Members[i].Freeze() }, mend: func(i int) error { return c.Members[i].Thaw() }},
		{name: "cut off", fail: func(i int) error { c.Cut(i); return nil }, mend: func(i int) error { c.Heal(); return nil }},
	} {
		leader, err := c.Leader(ctx, -1)
		if err != nil {
			return err
		}
		if err := f.fail(leader); err != nil {
			return err
		}
		if _, err := c.Leader(ctx, leader); err != nil {
			return err
		}
		goesOn("leader " + f.name)
		if err := f.mend(leader); err != nil {
			return err
		}
		goesOn("a leader that was " + f.name + " is back")
	}
	return nil
}
