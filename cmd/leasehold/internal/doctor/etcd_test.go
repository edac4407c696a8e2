package doctor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

// etcdCluster returns three members in order, to be changed.
func etcdCluster(change func(e *etcdstore.Examination)) etcdstore.Examination {
	e := etcdstore.Examination{Node: "a,b,c", Cluster: etcdstore.Cluster{Voters: 3}}
	for i, endpoint := range []string{"a", "b", "c"} {
		e.Members = append(e.Members, etcdstore.Member{Endpoint: endpoint, ID: uint64(i + 1), Leader: 1, Version: "3.6.15", Took: time.Millisecond})
	}
	change(&e)
	return e
}

var etcdCases = []struct {
	change   func(e *etcdstore.Examination)
	severity Severity
	code     Code
	says     string
}{
	{func(e *etcdstore.Examination) { e.Unusable = errors.New("permission denied") }, Error, "etcd-unusable", "permission denied"},
	{func(e *etcdstore.Examination) { e.Members[1].Version = "3.4.23" }, Warning, "etcd-not-safe", "3.4.31"},
	{func(e *etcdstore.Examination) { e.Voters, e.Members = 1, e.Members[:1] }, Info, "etcd-few-members", "1 voting"},
	{func(e *etcdstore.Examination) { e.Members = e.Members[:2] }, Warning, "etcd-members-unnamed", "names 2"},
	{func(e *etcdstore.Examination) { e.Restored = true }, Warning, "etcd-restored", "backup"},
	{func(e *etcdstore.Examination) { e.Uncompacted = true }, Warning, "etcd-uncompacted", "100000"},
	{func(e *etcdstore.Examination) { e.Members[2].Err = errors.New("connection refused") }, Warning, "etcd-member-down", "refused"},
	{func(e *etcdstore.Examination) {
		e.Members = append(e.Members, etcdstore.Member{Endpoint: "d", Learner: true})
	}, Warning, "etcd-learner", "learner"},
	{func(e *etcdstore.Examination) { e.Members[2].Leader = 0 }, Error, "etcd-no-leader", "no leader"},
	{func(e *etcdstore.Examination) { e.Members[2].Errors = []string{"NOSPACE"} }, Error, "etcd-alarm", "NOSPACE"},
	{func(e *etcdstore.Examination) { e.Members[2].Took = 2 * time.Second }, Warning, "etcd-slow", "2s"},
}

func TestEtcdFindings(t *testing.T) {
	for _, c := range etcdCases {
		got := Etcd(etcdCluster(c.change), 10*time.Second)
		if len(got) != 1 || got[0].Severity != c.severity || got[0].Code != c.code || !strings.Contains(got[0].Message, c.says) || got[0].Advice == "" {
			t.Errorf("%+v, want one %v %s with %q", got, c.severity, c.code, c.says)
		}
	}
	if got := Etcd(etcdCluster(func(*etcdstore.Examination) {}), 10*time.Second); got == nil || len(got) != 0 {
		t.Errorf("a sound cluster: %+v, want an empty list", got)
	}
}
