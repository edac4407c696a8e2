package doctor

import (
	"os"
	"regexp"
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
	reach(reached, fileCases, File)
	reach(reached, databaseCases, Database)
	reach(reached, natsCases, ofTenSeconds(NATS))
	reach(reached, s3Cases, ofTenSeconds(S3))
	reach(reached, gcsCases, ofTenSeconds(GCS))
	reach(reached, azureCases, ofTenSeconds(Azure))
	reach(reached, kubernetesCases, ofTenSeconds(Kubernetes))
	for _, c := range etcdCases {
		for _, f := range Etcd(etcdCluster(c.change), 10*time.Second) {
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
	for _, k := range kinds {
		if !reached[k.code] {
			t.Errorf("no case leads to the finding %s, want one", k.code)
		}
		delete(reached, k.code)
	}
	for c := range reached {
		t.Errorf("the finding %s is not among the kinds", c)
	}
}

// reach notes the codes of the findings that cases lead to.
func reach[Examination any](reached map[Code]bool, cases []engineCase[Examination], conclude func(Examination) []Finding) {
	for _, c := range cases {
		for _, f := range conclude(c.e) {
			reached[f.Code] = true
		}
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

func TestKindsAreWellFormed(t *testing.T) {
	seen := map[Code]bool{}
	for _, k := range kinds {
		if seen[k.code] || k.advice == "" {
			t.Errorf("%s is there twice, or has no advice", k.code)
		}
		seen[k.code] = true
		if !regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z]+)*$`).MatchString(string(k.code)) {
			t.Errorf("the code is %q, want lower-case words with hyphens", k.code)
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
	for _, k := range kinds {
		if !documented[k.code] {
			t.Errorf("docs/doctor.md does not explain %s", k.code)
		}
		delete(documented, k.code)
	}
	for c := range documented {
		t.Errorf("docs/doctor.md has a heading %s, want only headings that are codes", c)
	}
}
