// Package doctor draws conclusions from what was found out about a store: which
// of it endangers locks, and what to do about that. It looks at nothing itself.
package doctor

import (
	"cmp"
	"fmt"
	"slices"
)

// Severity says how bad a finding is.
type Severity uint8

// The severities.
const (
	// Info is worth knowing; nothing has to be done.
	Info Severity = iota
	// Warning: locks work, and will not some day, or promise less than they
	// seem to.
	Warning
	// Error: locks do not work, or two can hold one.
	Error
)

// String is how the severity is written everywhere.
func (s Severity) String() string {
	switch s {
	case Error:
		return "error"
	case Warning:
		return "warning"
	}
	return "info"
}

// MarshalText writes what String does.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Finding is one conclusion.
type Finding struct {
	Severity Severity `json:"severity"`
	Code     Code     `json:"code"`
	// Node is the server or the file it is about, empty for the whole store.
	Node string `json:"node"`
	// Message says what is so and what follows from it, Advice what to do.
	Message string `json:"message"`
	Advice  string `json:"advice"`
}

// Worst is the severity of the worst finding, Info for none.
func Worst(findings []Finding) Severity {
	worst := Info
	for _, f := range findings {
		worst = max(worst, f.Severity)
	}
	return worst
}

// report collects findings.
type report struct {
	several  bool // it is about several independent servers
	findings []Finding
}

// add takes a finding about node, or about all of them. The advice that belongs
// to the code is filled in.
func (r *report) add(s Severity, c Code, node, format string, args ...any) {
	do := advice[c]
	if other, ok := adviceForSeveral[c]; ok && r.several {
		do = other
	}
	r.findings = append(r.findings, Finding{Severity: s, Code: c, Node: node, Message: fmt.Sprintf(format, args...), Advice: do})
}

// sorted are the findings, worst first, those of one code together, and never
// nil.
func (r *report) sorted() []Finding {
	order := map[Code]int{}
	for i, c := range Codes() {
		order[c] = i
	}
	slices.SortStableFunc(r.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(order[a.Code], order[b.Code]))
	})
	if r.findings == nil {
		return []Finding{}
	}
	return r.findings
}
