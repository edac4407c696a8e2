package doctor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/natsstore"
)

var natsCases = []struct {
	e        natsstore.Examination
	severity Severity
	code     Code
	says     string
}{
	{natsstore.Examination{Unusable: errors.New("authorization violation")}, Error, NATSUnusable, "authorization violation"},
	{natsstore.Examination{Replicas: 3}, Warning, NATSNotSynced, "lose power"},
	{natsstore.Examination{Class: store.CrashSafe, Replicas: 1}, Info, NATSFewReplicas, "1 replicas"},
	{natsstore.Examination{Class: store.Consensus, Replicas: 3, Unsynced: []string{"n1"}, Unseen: []string{"n2"}}, Error, NATSSyncWrong, "n1"},
	{natsstore.Examination{Class: store.Consensus, Replicas: 3, Unseen: []string{"n2"}}, Info, NATSSyncUnseen, "n2"},
	{natsstore.Examination{Class: store.Consensus, Replicas: 3, Behind: []string{"n2"}}, Warning, NATSReplicaBehind, "n2"},
	{natsstore.Examination{Class: store.Consensus, Replicas: 3, Took: 2 * time.Second}, Warning, NATSSlow, "2s"},
}

func TestNATSFindings(t *testing.T) {
	for _, c := range natsCases {
		got := NATS(c.e, 10*time.Second)
		if len(got) != 1 || got[0].Severity != c.severity || got[0].Code != c.code || !strings.Contains(got[0].Message, c.says) || got[0].Advice == "" {
			t.Errorf("%+v, want one %v %s with %q", got, c.severity, c.code, c.says)
		}
	}
	if got := NATS(natsstore.Examination{Class: store.Consensus, Replicas: 3}, 10*time.Second); got == nil || len(got) != 0 {
		t.Errorf("sound servers: %+v, want an empty list", got)
	}
}
