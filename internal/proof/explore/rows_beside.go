package explore

// besideRows returns the rows of what a holder does to its lease besides renewing it: it
// releases and waits for the answer, extends, and holds for so long only.
func besideRows() []Row {
	return []Row{
		{Name: "V1", What: "a release that is reported as successful has freed a majority: as shipped",
			Model: world(2, func(m *Model) { m.ReleaseVote, m.Check = true, Safety|Freed })},
		{Name: "V1-renew", What: "the same for one lease, which is renewed; no request is under way for longer than tombstones last",
			Model: world(1, func(m *Model) { m.ReleaseVote, m.Renewals, m.MaxDelay, m.Check = true, 1, 1, Freed })},
		{Name: "V1-half", What: "half of the answers are enough for a release", Off: []string{"over-half"},
			Model: world(2, func(m *Model) { m.ReleaseVote, m.Check = true, Freed }), Want: Freed, Mutant: "quorum-over-half"},
		{Name: "X1", What: "the holder extends its lease while a renewal is under way: as shipped",
			Model: world(2, func(m *Model) { m.Renewals, m.Extends = 1, 1 })},
		{Name: "X1-late", What: "the holder's own extension counts even if the old validity has ended", Off: []string{"renew-in-time"},
			Model: world(2, func(m *Model) { m.Extends = 1 }), Want: Renewals, Mutant: "lease-renew-in-time"},
		{Name: "H1", What: "a lease ends after its longest hold, however often it is extended: as shipped",
			Model: world(1, func(m *Model) { m.MaxHold, m.Renewals, m.Extends, m.Check = 3, 1, 1, Bounded })},
		{Name: "H1-off", What: "extensions count beyond the longest hold", Off: []string{"max-hold"},
			Model: world(1, func(m *Model) { m.MaxHold, m.Renewals, m.Extends, m.Check = 3, 1, 1, Bounded }), Want: Bounded, Mutant: "lease-max-hold"},
	}
}
