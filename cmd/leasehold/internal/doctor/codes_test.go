package doctor

import (
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

// Every code has a case that leads to it: a rule that nothing triggers is none.
func TestEveryCodeIsReached(t *testing.T) {
	reached := map[Code]bool{}
	for _, c := range redisCases {
		e := sound(c.nodes)
		c.make(&e, &e.Nodes[0])
		for _, f := range Redis(e) {
			reached[f.Code] = true
		}
	}
	for _, c := range fileCases {
		for _, f := range File(c.e) {
			reached[f.Code] = true
		}
	}
	for _, c := range databaseCases {
		for _, f := range Database(c.e) {
			reached[f.Code] = true
		}
	}
	for _, c := range etcdCases {
		for _, f := range Etcd(etcdCluster(c.change), 10*time.Second) {
			reached[f.Code] = true
		}
	}
	for _, c := range natsCases {
		for _, f := range NATS(c.e, 10*time.Second) {
			reached[f.Code] = true
		}
	}
	for _, c := range s3Cases {
		for _, f := range S3(c.e, 10*time.Second) {
			reached[f.Code] = true
		}
	}
	for _, c := range gcsCases {
		for _, f := range GCS(c.e, 10*time.Second) {
			reached[f.Code] = true
		}
	}
	for _, c := range kubernetesCases {
		for _, f := range Kubernetes(c.e, 10*time.Second) {
			reached[f.Code] = true
		}
	}
	for _, c := range azureCases {
		for _, f := range Azure(c.e, 10*time.Second) {
			reached[f.Code] = true
		}
	}
	for _, c := range zookeeperCases {
		e := soundEnsemble()
		c.spoil(&e)
		for _, f := range ZooKeeper(e, 30*time.Second) {
			reached[f.Code] = true
		}
	}
	for _, f := range RedisCluster(redisadmin.ClusterExamination{Masters: []redisadmin.Examination{sound(1)}, Unserved: 1}) {
		reached[f.Code] = true
	}
	for _, f := range RedisCluster(redisadmin.ClusterExamination{Seeds: []store.NodeOutcome{{Node: "a:1", Outcome: store.Refused, Err: redisadmin.ErrNoCluster}}}) {
		reached[f.Code] = true
	}
	for _, f := range append(Memory(), Remote(store.Caps{})...) {
		reached[f.Code] = true
	}
	for _, c := range Codes() {
		if !reached[c] {
			t.Errorf("no case leads to the finding %s, want one", c)
		}
		delete(reached, c)
	}
	for c := range reached {
		t.Errorf("the finding %s is not in Codes()", c)
	}
}

// Several independent servers are the advice for a single server, but not for several.
func TestAdviceIsNotThePresentSetting(t *testing.T) {
	for _, c := range redisCases {
		e := sound(c.nodes)
		c.make(&e, &e.Nodes[0])
		for _, f := range Redis(e) {
			if several(e) && regexp.MustCompile("three|[Ii]ndependent servers|independent server ").MatchString(f.Advice) {
				t.Errorf("%s, of %d servers: %s", f.Code, len(e.Nodes), f.Advice)
			}
		}
	}
}

func TestCodesAreWellFormed(t *testing.T) {
	all := Codes()
	slices.Sort(all)
	if len(slices.Compact(all)) != len(Codes()) || len(advice) != len(Codes()) {
		t.Errorf("%d codes, %d pieces of advice, want each once", len(Codes()), len(advice))
	}
	for _, c := range Codes() {
		if !regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z]+)*$`).MatchString(string(c)) {
			t.Errorf("the code is %q, want lower-case words with hyphens", c)
		}
		if advice[c] == "" {
			t.Errorf("%s has no advice", c)
		}
	}
}

// The document explains exactly the codes that there are.
func TestCodesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[Code]bool{}
	for _, m := range regexp.MustCompile("(?m)^### `([a-z0-9-]+)`$").FindAllSubmatch(text, -1) {
		if documented[Code(m[1])] {
			t.Errorf("docs/doctor.md has %s twice", m[1])
		}
		documented[Code(m[1])] = true
	}
	for _, c := range Codes() {
		if !documented[c] {
			t.Errorf("docs/doctor.md does not explain %s", c)
		}
		delete(documented, c)
	}
	for c := range documented {
		t.Errorf("docs/doctor.md has a heading %s, want only headings that are codes", c)
	}
}
