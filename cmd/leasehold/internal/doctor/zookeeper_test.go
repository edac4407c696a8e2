package doctor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store/zkstore"
)

// soundEnsemble returns an ensemble without findings.
func soundEnsemble() zkstore.Examination {
	return zkstore.Examination{Known: true, Voters: 3, Tick: 2 * time.Second, MaxTTL: 36 * time.Second, RoundTrip: time.Millisecond,
		Servers: []zkstore.ServerFacts{{Addr: "a:2181", Version: "3.8.0", Tick: 2 * time.Second}, {Addr: "b:2181"}, {Addr: "c:2181"}}}
}

var zookeeperCases = []struct {
	spoil    func(e *zkstore.Examination)
	severity Severity
	code     Code
	says     string
}{
	{func(e *zkstore.Examination) { e.Unusable = errors.New("no route") }, Error, "zookeeper-unusable", "no route"},
	{func(e *zkstore.Examination) { e.Servers[1].Err = errors.New("refused") }, Warning, "node-unreachable", "refused"},
	{func(e *zkstore.Examination) { e.Servers[0].Tick = 3 * time.Second }, Error, "zookeeper-tick", "3s"},
	{func(e *zkstore.Examination) { e.MaxTTL = 20 * time.Second }, Error, "ttl-over-maximum", "20s"},
	{func(e *zkstore.Examination) { e.Voters = 0 }, Info, "zookeeper-few-members", "one server"},
	{func(e *zkstore.Examination) { e.Voters = 2 }, Warning, "zookeeper-few-members", "2"},
	{func(e *zkstore.Examination) {
		e.Voters, e.Servers = 4, append(e.Servers, zkstore.ServerFacts{Addr: "d:2181"})
	}, Info, "even-nodes", "4"},
	{func(e *zkstore.Examination) { e.Voters = 5 }, Warning, "zookeeper-members-unnamed", "names 3"},
	{func(e *zkstore.Examination) { e.Servers[2].Version = "3.4.14" }, Error, "zookeeper-too-old", "3.4.14"},
	{func(e *zkstore.Examination) { e.Open = true }, Warning, "zookeeper-open", "remove"},
	{func(e *zkstore.Examination) { e.RoundTrip = 2 * time.Second }, Warning, "zookeeper-slow", "1s"},
}

func TestZooKeeperFindings(t *testing.T) {
	for _, c := range zookeeperCases {
		e := soundEnsemble()
		c.spoil(&e)
		got := ZooKeeper(e, 30*time.Second)
		if len(got) != 1 || got[0].Severity != c.severity || got[0].Code != c.code || !strings.Contains(got[0].Message, c.says) || got[0].Advice == "" {
			t.Errorf("%+v: %+v, want one %v %s with %q", e, got, c.severity, c.code, c.says)
		}
	}
	if got := ZooKeeper(soundEnsemble(), 30*time.Second); got == nil || len(got) != 0 {
		t.Errorf("a sound ensemble: %+v, want an empty list", got)
	}
}
