package redistest

import (
	"strings"
	"testing"
)

// Sentinels replace a master that is killed, and, on request, one that is well.
func TestWatched(t *testing.T) {
	for name, replace := range map[string]func(*testing.T, *Watched){
		"killed":     func(_ *testing.T, w *Watched) { w.Master.Kill() },
		"on request": func(t *testing.T, w *Watched) { w.Failover(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it mostly waits
			w := StartWatched(t, 3)
			if got := w.Sentinels[2].MasterAddr(t); got != w.Master.Addr() {
				t.Fatalf("the master is %s, want %s", got, w.Master.Addr())
			}
			replace(t, w)
			w.Promoted(t)
			if role := w.Replicas[0].Text(t, "ROLE"); !strings.HasPrefix(role, "master") {
				t.Errorf("the promoted replica has the role %s, want master", role)
			}
			if err := w.Sentinels[0].Restart(); err != nil {
				t.Fatal(err)
			}
			if got := w.Sentinels[0].MasterAddr(t); got != w.Replicas[0].Addr() {
				t.Errorf("a restarted sentinel names the master %s, want %s as before", got, w.Replicas[0].Addr())
			}
		})
	}
}
