//go:build unix

package cli

import (
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

// The findings are about the master and about the sentinels.
func TestDoctorOfSentinels(t *testing.T) {
	t.Parallel() // it mostly waits
	sure := []string{"--appendonly", "yes", "--appendfsync", "always"}
	w := redistest.Watch(t, redistest.Start(t, sure...), 2, sure)
	s := newSite(t)
	url := w.URL() + "&connect_timeout=5s&node_timeout=5s"
	codes, said := s.doctor(1, "--store", url)
	if len(codes) != 1 || codes["replicated"] != "warning" || !strings.Contains(said, w.Master.Addr()) {
		t.Errorf("%s, want only the finding replicated (warning), of the master", said)
	}
	w.Sentinels[1].Kill()
	if codes, said = s.doctor(1, "--store", url); len(codes) != 2 || codes["sentinel-silent"] != "warning" || !strings.Contains(said, w.Sentinels[1].Addr()) {
		t.Errorf("%s, want the findings replicated and sentinel-silent (warning), of the second sentinel", said)
	}
	w.Sentinels[0].Kill()
	if codes, said = s.doctor(2, "--store", url); codes["node-unreachable"] != "error" || !strings.Contains(said, "no sentinel names") {
		t.Errorf("%s, want the finding node-unreachable (error) and text with %q", said, "no sentinel names")
	}
}
