package resize

// Row is one search: a world, in most rows without one mechanism, and the property that must
// be found broken. With all mechanisms none is.
type Row struct {
	Name  string
	What  string
	Model Model
	Want  Property
}

// shrinks returns a world in which 3 permits become 2: one lease is there, two attempts ask by
// the number before, and the resize has its seats.
func shrinks(change func(*Model)) Model {
	m := Model{
		TTL: 2, Keep: 3, Quarantine: 3,
		Asks: [maxLeases]uint8{3, 3, 3}, Held: [maxLeases]uint8{0b011},
		Resizes: [maxResizers][2]uint8{{3, 2}}, Seated: true,
	}
	if change != nil {
		change(&m)
	}
	return m
}

// renews returns the same world with one attempt, and a lease that is renewed.
func renews(change func(*Model)) Model {
	return shrinks(func(m *Model) {
		m.Asks[2], m.Renewals = 0, 2
		if change != nil {
			change(m)
		}
	})
}

// told returns the same world after the resize: a lease does not know of it, and one attempt
// asks by the number before.
func told(change func(*Model)) Model {
	return renews(func(m *Model) {
		m.Told, m.Renewals = true, 4
		if change != nil {
			change(m)
		}
	})
}

// extra returns a world in which a lease has a slot that there is no permit for after the
// resize.
func extra(change func(*Model)) Model {
	return shrinks(func(m *Model) {
		m.Asks, m.Held, m.Slots = [maxLeases]uint8{3, 3, 2}, [maxLeases]uint8{0b011, 0b110}, [maxLeases]uint8{2, 0}
		if change != nil {
			change(m)
		}
	})
}

// healed returns a world after the resize: such a lease is at two nodes, and two attempts ask by
// the new number.
func healed(change func(*Model)) Model {
	return told(func(m *Model) {
		m.Asks, m.Slots, m.Renewals = [maxLeases]uint8{3, 2, 2}, [maxLeases]uint8{2}, 2
		if change != nil {
			change(m)
		}
	})
}

// crosses returns a world in which one resize has its seats when another, back to the number
// before, begins.
func crosses(change func(*Model)) Model {
	return shrinks(func(m *Model) {
		m.Asks, m.Resizes[1] = [maxLeases]uint8{3, 2}, [2]uint8{2, 3}
		if change != nil {
			change(m)
		}
	})
}

// Rows is the whole set.
func Rows() []Row {
	return []Row{
		{Name: "N1", What: "the number shrinks while a lease is there",
			Model: shrinks(nil)},
		{Name: "N1-crash", What: "the same; a node forgets, and stays out for longer than a lease",
			Model: shrinks(func(m *Model) { m.Crashes = 1 })},
		{Name: "N1-grow", What: "the number grows, and one attempt asks by the new one",
			Model: shrinks(func(m *Model) { m.Asks, m.Resizes[0] = [maxLeases]uint8{2, 3, 2}, [2]uint8{2, 3} })},
		{Name: "N1-kept", What: "a node keeps no number that nobody uses",
			Model: shrinks(func(m *Model) { m.Off.Kept = true }), Want: Numbers},
		{Name: "N1-short", What: "a node keeps it for a third of a TTL",
			Model: shrinks(func(m *Model) { m.TTL, m.Keep = 3, 1 }), Want: Numbers},
		{Name: "N1-timely", What: "a resize waits for its answers for ever",
			Model: shrinks(func(m *Model) { m.Off.Timely = true }), Want: Numbers},
		{Name: "N2", What: "the number shrinks while a lease is renewed, which is healed",
			Model: renews(nil)},
		{Name: "N2-renewed", What: "the same; no renewal fails for want of a common number",
			Model: renews(func(m *Model) { m.Asks[1], m.Check = 0, []Property{Renewed} })},
		{Name: "N2-joint", What: "a node that has set the number has no other for renewals",
			Model: renews(func(m *Model) { m.Asks[1], m.Check, m.Off.Joint = 0, []Property{Renewed}, true }), Want: Renewed},
		{Name: "N2-all", What: "a resize has worked when a majority has set the number",
			Model: renews(func(m *Model) { m.Asks[1], m.Check, m.Off.All = 0, []Property{Renewed}, true }), Want: Renewed},
		{Name: "N3", What: "the number has shrunk; a late acquire and a late heal of a lease that is renewed carry the number before",
			Model: told(nil)},
		{Name: "N3-long", What: "the same with leases of three ticks",
			Model: told(func(m *Model) { m.TTL, m.Keep, m.Renewals = 3, 4, 3 })},
		{Name: "N3-crash", What: "the same; a node forgets, and stays out for longer than a lease",
			Model: told(func(m *Model) { m.Crashes = 1 })},
		{Name: "N3-seat", What: "the same; the seat lasts for longer than the lease, and for as long as the node stays out",
			Model: told(func(m *Model) { m.Crashes, m.Seat = 1, 3 })},
		{Name: "N3-common", What: "a renewal counts nodes whatever their numbers are",
			Model: told(func(m *Model) { m.Off.Common = true }), Want: Numbers},
		{Name: "N3-late", What: "the same; a request for the seat arrives late",
			Model: told(func(m *Model) { m.Resizes[1], m.Late, m.Renewals = m.Resizes[0], true, 3 })},
		{Name: "N3-taken", What: "a seat that was only taken brings both numbers for renewals",
			Model: told(func(m *Model) { m.Resizes[1], m.Late, m.Renewals, m.Off.Taken = m.Resizes[0], true, 3, true }), Want: Numbers},
		{Name: "N4", What: "a lease has a slot that there is no permit for any more",
			Model: extra(nil)},
		{Name: "N4-fits", What: "a node grants while it has such a lease",
			Model: extra(func(m *Model) { m.Off.Fits = true }), Want: Holders},
		{Name: "N4-heals", What: "such a lease is renewed after the resize",
			Model: healed(nil)},
		{Name: "N4-healed", What: "such a lease is given back to a node",
			Model: healed(func(m *Model) { m.Off.Healed = true }), Want: Holders},
		{Name: "N5", What: "two resizes cross",
			Model: crosses(nil)},
		{Name: "N5-again", What: "a resize is repeated before the first has ended",
			Model: crosses(func(m *Model) { m.Asks[1], m.Resizes[1] = 3, m.Resizes[0] })},
		{Name: "N5-late", What: "the same; no resize works later than the TTL of its seat",
			Model: crosses(func(m *Model) { m.Asks[1], m.Check = 0, []Property{Ended} })},
		{Name: "N5-seat", What: "a node sets the number for a resize without the seat",
			Model: crosses(func(m *Model) { m.Asks[1], m.Check, m.Off.Seat = 0, []Property{Ended}, true }), Want: Ended},
		{Name: "N5-split", What: "the same, where two resizes cross",
			Model: crosses(func(m *Model) { m.Off.Seat = true }), Want: Split},
	}
}
