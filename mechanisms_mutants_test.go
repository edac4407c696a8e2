//go:build mutants

package leasehold_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/holds"
	"github.com/leasehold-dev/leasehold/internal/waitq"
	"github.com/leasehold-dev/leasehold/internal/waits"
)

// off is the environment variable that names the mechanism to switch off.
const off = "LEASEHOLD_TEST_OFF"

// Each test passes, and fails when the mechanism that it is about is switched off.
func TestMechanismsAreNeeded(t *testing.T) {
	for _, c := range [][2]string{
		{"release-detached", "^TestReleaseTwiceAndWithEndedContext$"},
		{"renewal-from-start", "^TestRenewalCountsFromItsRequest$"},
		{"returned-given-up", "^TestUnclaimedPlaceIsGivenUp$"},
		{"grant-from-since", "^TestGrantCountsFromItsRequest$"},
		{"unwanted-released", "^TestUnwantedGrantIsReleased$"},
		{"place-kept", "^TestPlaceOutlastsItsWaiter$"},
		{"place-kept", "^TestRankOutlastsItsWaiter$"},
		{"own-places", "^TestReadersOfOneProcessWaitTogether$"},
		{"own-places", "^TestNobodyStarves$"},
		{"sets-ordered", "^TestOverlappingSets$"},
		{"tick-recorded", "^TestOnce$"},
		{"tick-recorded", "^TestCrashedRunIsNotRepeated$"},
		{"late-run-refused", "^TestLateRun$"},
		{"candidacy-repeated", "^TestElectionAfterALoss$"},
		{"breaks-pushed", "^TestBreakIsPushed$"},
	} {
		name, by := c[0], c[1]
		for _, switched := range []string{"", name} {
			most := "5m"
			if switched != "" { // some wait for ever then
				most = "20s"
			}
			c := exec.Command(os.Args[0], "-test.run", by, "-test.timeout", most)
			c.Env = append(os.Environ(), off+"="+switched)
			out, err := c.CombinedOutput()
			if failed := err != nil; failed != (switched != "") {
				t.Errorf("%s with the mechanism %q off: failed %v, want %v (%v)\n%s", by, switched, failed, switched != "", err, out)
			}
		}
	}
}

func init() {
	name := os.Getenv(off)
	if name == "" {
		return
	}
	for _, of := range []map[string]*bool{leasehold.UseMechanisms, holds.Mechanisms, holds.BreakMechanisms, waits.Mechanisms, waits.KindMechanisms, waitq.Mechanisms, waitq.QueueMechanisms} {
		if on := of[name]; on != nil {
			*on = false
			return
		}
	}
	panic("no mechanism is called " + name)
}
