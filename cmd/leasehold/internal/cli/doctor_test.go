//go:build unix

package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/doctor"
)

// findings are what "doctor --json" prints.
type findings struct {
	Findings []map[string]string `json:"findings"`
}

func (s *site) doctor(code int, args ...string) (codes map[string]string, said string) {
	s.t.Helper()
	said = s.run(code, append([]string{"doctor", "--json"}, args...)...).out.String()
	var f findings
	if err := json.Unmarshal([]byte(said), &f); err != nil || f.Findings == nil {
		s.t.Fatalf("%v: %s, want findings", err, said)
	}
	codes = map[string]string{}
	for _, one := range f.Findings {
		for _, key := range []string{"severity", "code", "message", "advice"} {
			if one[key] == "" {
				s.t.Errorf("no %s: %v, want one", key, one)
			}
		}
		if _, there := one["node"]; !there || len(one) != 5 {
			s.t.Errorf("a finding is %v, want a node and four other keys", one)
		}
		codes[one["code"]] = one["severity"]
	}
	return codes, said
}

func TestEveryStoreHasADoctor(t *testing.T) {
	for _, s := range schemes {
		if examiners[s.names[0]] == nil {
			t.Errorf("doctor has no examiner of %s stores, want one", s.names[0])
		}
	}
}

// A server may say anything; what is printed is harmless.
func TestFindingsAreSafe(t *testing.T) {
	var b strings.Builder
	fs := []doctor.Finding{{Severity: doctor.Error, Code: "login-refused", Node: "a\x1b[2J", Message: oneLine("no\r\n\x1b[31m redis://u:secret@h"), Advice: "do"}}
	if err := writeFindings(&b, fs, false); err != nil {
		t.Fatal(err)
	}
	if out := b.String(); strings.ContainsAny(out, "\x1b\r") || strings.Contains(out, "secret") || strings.Count(out, "\n") != 5 {
		t.Errorf("%q, want no control characters and no password", out)
	}
}
