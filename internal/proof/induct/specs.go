package induct

import _ "embed"

var (
	//go:embed redlock.spec
	redlock string
	//go:embed notice.spec
	notice string
	//go:embed etcd.spec
	etcd string
	//go:embed record.spec
	record string
	//go:embed drift.smt2
	drift string
)

// Redlock returns the protocol over independent nodes whose counters survive crashes.
func Redlock() *Spec { return read("redlock.spec", redlock, "durable") }

// RedlockFloor returns that protocol for nodes whose counters a crash can lose: no token is below
// the clock of its node.
func RedlockFloor() *Spec { return read("redlock.spec", redlock, "floor") }

// Specs returns all that is proved.
func Specs() []*Spec {
	return []*Spec{Redlock(), RedlockFloor(), read("notice.spec", notice, ""), read("etcd.spec", etcd, ""), read("record.spec", record, "")}
}

// Questions returns all that is to be asked.
func Questions() (list []Question) {
	list = append(list, Question{Obligation, "drift.smt2: a client's deadline comes before the node forgets the lease", "unsat", func() string { return drift }})
	for _, s := range Specs() {
		list = append(list, s.Questions()...)
	}
	return list
}

func read(name, text, variant string) *Spec {
	s, err := Parse(name, text, variant)
	if err != nil {
		panic(err)
	}
	if variant != "" {
		s.Name += " (" + variant + ")"
	}
	return s
}
