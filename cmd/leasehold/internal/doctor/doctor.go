package doctor

import (
	"cmp"
	"fmt"
	"slices"
)

// Severity is how bad a finding is.
type Severity uint8

// The severities.
const (
	// Info is worth knowing; no action is needed.
	Info Severity = iota
	// Warning means that locks work now but may fail later, or that they
	// guarantee less than they seem to.
	Warning
	// Error means that locks do not work, or that two owners can hold one.
	Error
)

// String returns the severity in lower case: "error", "warning" or "info".
func (s Severity) String() string {
	switch s {
	case Error:
		return "error"
	case Warning:
		return "warning"
	}
	return "info"
}

// MarshalText writes what String returns.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Finding is one conclusion about a store.
type Finding struct {
	Severity Severity `json:"severity"`
	Code     Code     `json:"code"`
	// Node is the server or the file it is about, empty for the whole store.
	Node string `json:"node"`
	// Message says what was found and what follows from it. Advice says what to
	// do.
	Message string `json:"message"`
	Advice  string `json:"advice"`
}

// Worst returns the severity of the worst finding, or Info if there is none.
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

// add adds a finding about one node, or about the whole store if node is empty.
// It fills in the advice for the code.
func (r *report) add(s Severity, c Code, node, format string, args ...any) {
	f := Finding{Severity: s, Code: c, Node: node, Message: fmt.Sprintf(format, args...)}
	if i := orderOf(c); i >= 0 {
		if f.Advice = kinds[i].advice; r.several && kinds[i].several != "" {
			f.Advice = kinds[i].several
		}
	}
	r.findings = append(r.findings, f)
}

// sorted returns the findings, worst first and grouped by code. The result is
// never nil.
func (r *report) sorted() []Finding {
	slices.SortStableFunc(r.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(orderOf(a.Code), orderOf(b.Code)))
	})
	if r.findings == nil {
		return []Finding{}
	}
	return r.findings
}

// orderOf returns where a code stands among the kinds.
func orderOf(c Code) int {
	return slices.IndexFunc(kinds, func(k kind) bool { return k.code == c })
}
