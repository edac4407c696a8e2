package layering

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// sound is a small module that breaks no rule.
var sound = map[string]string{
	"go.mod":                                  "module example.org/m\n\ngo 1.26\n\nrequire go.uber.org/goleak v1.3.0\n",
	"go.work":                                 "go 1.26\n\nuse (\n\t.\n\t./cmd/leasehold // the command\n\t./store/filestore\n)\n",
	"store/filestore/go.mod":                  "module example.org/m/store/filestore\n\nrequire (\n\texample.org/m v0.0.0\n\tgolang.org/x/sys v0.1.2\n)\n",
	"cmd/leasehold/go.mod":                    "module example.org/m/cmd/leasehold\n\nrequire (\n\texample.org/m v0.0.0\n\texample.org/m/store/filestore v0.0.0\n\tgolang.org/x/sys v0.1.2\n)\n",
	"client.go":                               `package m; import ("context"; _ "example.org/m/store"; _ "example.org/m/internal/leasefsm")`,
	"client_test.go":                          `package m_test; import (_ "example.org/m/store/redisstore"; _ "example.org/m/internal/testenv/redistest"; _ "go.uber.org/goleak")`,
	"store/store.go":                          `package store; import _ "example.org/m/fence"`,
	"store/redisstore/redis.go":               `package redis; import (_ "example.org/m/store"; _ "example.org/m/internal/quorum")`,
	"store/memstore/memory.go":                `package memory; import _ "example.org/m/store"`,
	"store/filestore/file.go":                 `package filestore; import (_ "example.org/m/store"; _ "golang.org/x/sys/unix")`,
	"internal/leasefsm/fsm.go":                `package leasefsm; import ("time"; "example.org/m/internal/clock"); func f(n clock.Instant) time.Duration { return time.Second }`,
	"internal/leasefsm/f_test.go":             `package leasefsm; import "time"; var now = time.Now`,
	"internal/quorum/quorum.go":               `package quorum`,
	"cmd/leasehold/internal/runner/runner.go": `package runner; import (_ "golang.org/x/sys/unix"; _ "example.org/m/cmd/leasehold/internal/runner/warden")`,
	"cmd/leasehold/internal/doctor/doctor.go": `package doctor; import _ "example.org/m/store/filestore"`,
	"internal/clock/clock.go":                 `package clock; type Instant int; func System() {}`,
	"internal/testenv/redistest/r.go":         `package redistest; import _ "os"`,
	"internal/proof/sim/sim.go":               `package sim; import (_ "example.org/m"; _ "example.org/m/internal/testenv/redistest"; _ "example.org/m/internal/quorum")`,
	"guard/sqlguard/guard.go":                 `package sqlguard; import _ "example.org/m/fence"`,
	"fence/fence.go":                          `package fence`,
	"fence/testdata/x.go":                     `package nonsense; import _ "example.org/m"`,
	"bench/go.mod":                            "module example.org/m/bench\n",
	"bench/util/util.go":                      `package util; import _ "example.com/anything"`,
}

// checkWith checks the sound module with some files changed or added.
func checkWith(t *testing.T, r rules, changes map[string]string) []string {
	t.Helper()
	return r.check(readFiles(t, changes))
}

// readFiles reads the sound module with some files changed or added.
func readFiles(t *testing.T, changes map[string]string) tree {
	t.Helper()
	fsys := fstest.MapFS{}
	for _, files := range []map[string]string{sound, changes} {
		for name, source := range files {
			fsys[name] = &fstest.MapFile{Data: []byte(source)}
		}
	}
	tree, err := readTree(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestSoundModulePasses(t *testing.T) {
	if wrong := checkWith(t, project, nil); len(wrong) != 0 {
		t.Errorf("found in a sound module:\n%s", strings.Join(wrong, "\n"))
	}
}

// Each change breaks one rule. The checker reports that one, and no other.
func TestEveryRuleCanFail(t *testing.T) {
	const pure = "internal/quorum/x.go"
	for _, c := range []struct{ name, file, source, want string }{
		{"unknown package", "internal/novel/n.go", `package novel`, "internal/novel: belongs to no layer: register it in " + register},
		{"import points up", "store/x.go", `package store; import _ "example.org/m/store/memstore"`, "point down only"},
		{"import on another system only", "store/x_windows.go", `package store; import _ "example.org/m/store/memstore"`, "point down only"},
		{"import behind a build tag", "store/x.go", "//go:build never\n\npackage store; import _ \"example.org/m/internal/leasefsm\"", "point down only"},
		{"stores know each other", "store/redisstore/x.go", `package redis; import _ "example.org/m/store/memstore"`, "point down only"},
		{"store knows the client", "store/memstore/x.go", `package memory; import _ "example.org/m"`, "point down only"},
		{"guard knows the client", "guard/sqlguard/x.go", `package sqlguard; import _ "example.org/m"`, "point down only"},
		{"guard knows a clock", "guard/sqlguard/x.go", `package sqlguard; import _ "example.org/m/internal/clock"`, "may know fence only"},
		{"client knows a store", "x.go", `package m; import _ "example.org/m/store/memstore"`, "may know store, "},
		{"runner knows the seam", "cmd/leasehold/internal/runner/x.go", `package runner; import _ "example.org/m/store"`, "may know cmd/leasehold/internal/runner/warden, "},
		{"quorum used by another store", "store/memstore/x.go", `package memory; import _ "example.org/m/internal/quorum"`, "it is there for internal/quorum/driver, "},
		{"test equipment in a product", "cmd/leasehold/internal/cli/x.go", `package cli; import _ "example.org/m/internal/testenv/redistest"`, "only test files may import"},
		{"foreign module in the seam", "store/x.go", `package store; import _ "github.com/redis/rueidis"`, "may not depend on"},
		{"another store's module", "store/memstore/x.go", `package memory; import _ "golang.org/x/sys/unix"`, "may not depend on"},
		{"a module with a similar name", "store/filestore/x.go", `package filestore; import _ "golang.org/x/sys2"`, "may not depend on"},
		{"a test of the root module needs another", "store/redisstore/x_test.go", `package redis; import _ "example.org/m/store/filestore"`, "the go.mod of module example.org/m does not require its module"},
		{"a test needs a foreign module", "store/memstore/x_test.go", `package memory; import _ "golang.org/x/sys/unix"`, "the go.mod of module example.org/m does not require its module"},
		{"replies know connections", "store/redisstore/internal/resp/x.go", `package resp; import _ "example.org/m/store/redisstore/internal/conn"`, "point down only"},
		{"connections know scripts", "store/redisstore/internal/conn/x.go", `package conn; import _ "example.org/m/store/redisstore/internal/script"`, "point down only"},
		{"connections know locks", "store/redisstore/internal/conn/x.go", `package conn; import _ "example.org/m/store"`, "of ours, this package may know store/redisstore/internal/config, "},
		{"scripts know connections", "store/redisstore/internal/script/x.go", `package script; import _ "example.org/m/store/redisstore/internal/conn"`, "point down only"},
		{"sentinels know clusters", "store/redisstore/internal/sentinel/x.go", `package sentinel; import _ "example.org/m/store/redisstore/internal/cluster"`, "point down only"},
		{"locking knows what operators need", "store/redisstore/x.go", `package redis; import _ "example.org/m/store/redisstore/redisadmin"`, "point down only"},

		{"a value of any type", "internal/quorum/driver/x.go", `package driver; type call struct{ payload any }`, "any is only a constraint here"},
		{"a value of any type, spelled out", "internal/quorum/driver/x.go", `package driver; func put[P interface{}](P, interface{}) {}`, "any is only a constraint here"},
		{"a Store made up to dial", "store/redisstore/x.go", `package redis; type Store struct{}; func open() *Store { return &Store{} }; func dial() { _ = Store{} }`, "makes a Store in 2 places, want one"},
		{"closing polls", "store/redisstore/close.go", `package redis; import "time"; func Close() { for range time.NewTicker(1).C {} }`, "store/redisstore.Close waits for a time"},
		{"closing sleeps", "store/zkstore/close.go", `package zk; import ("context"; "example.org/m/internal/clock"); func Close() { clock.Sleep(context.Background(), 1) }`, "store/zkstore.Close waits for a time"},
		{"a branch on the topology", "store/redisstore/x.go", `package redis; func (s *Store) f() { if s.Topology != nil { return } }`, "a Topology is asked"},
		{"a branch on the type of the topology", "store/redisstore/x.go", `package redis; func (s *Store) f() { if _, ok := s.Topology.(clustered); ok { return } }`, "a Topology is asked"},
		{"a switch on the topology", "store/redisstore/x.go", `package redis; func (s *Store) f() { switch s.Topology.(type) { } }`, "a Topology is asked"},
		{"an error reply known by its words", "store/redisstore/redisadmin/x.go", `package redisadmin; func f(s string) bool { return s == "NOPERM" }`, "reads the words of an error reply"},
		{"a reply that is searched", "store/redisstore/x.go", `package redis; import "bytes"; func f() bool { return bytes.Contains(v.Text, w) }`, "reads the words of an error reply"},
		{"an error that is searched", "store/redisstore/x.go", `package redis; import "strings"; func f(err error) bool { return strings.HasPrefix(err.Error(), "x") }`, "reads the words of an error reply"},

		{"package name without meaning", "store/memstore/x.go", `package helpers`, `"helpers" says nothing`},
		{"file name without meaning", "store/memstore/util_test.go", `package memory`, `"util" says nothing`},

		{"pure package with a context", pure, `package quorum; import _ "context"`, "imports context"},
		{"pure package with a part of net", pure, `package quorum; import _ "net/url"`, "imports net/url"},
		{"pure package with locks", pure, `package quorum; import _ "sync"`, "imports sync"},
		{"pure package with random numbers", pure, `package quorum; import _ "math/rand/v2"`, "imports math/rand/v2"},
		{"pure package asks the time", pure, `package quorum; import "time"; var x = time.Now`, "uses time.Now"},
		{"pure package asks the time by another name", pure, `package quorum; import t "time"; func f() { t.Sleep(1) }`, "uses t.Sleep"},
		{"pure package asks the time by a dot import", pure, `package quorum; import . "time"; func f() { Sleep(1) }`, "a dot import"},
		{"pure package reads the clock", pure, `package quorum; import "example.org/m/internal/clock"; func f() { clock.System() }`, "uses clock.System"},
		{"pure package starts a goroutine", pure, `package quorum; func f() { go f() }`, "starts a goroutine"},
		{"pure package has a channel", pure, `package quorum; func f(chan int) {}`, "has a channel"},
		{"pure package sends", pure, `package quorum; func f[C ~[]int](c C) { x <- 1 }`, "sends on a channel"},
		{"pure package receives", pure, `package quorum; var y = <-x`, "receives from a channel"},
		{"pure package waits", pure, `package quorum; func f() { select {} }`, "waits in a select"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wrong := checkWith(t, project, map[string]string{c.file: c.source})
			if len(wrong) != 1 || !strings.Contains(wrong[0], c.want) {
				t.Errorf("found %q, want one line with %q", wrong, c.want)
			}
		})
	}
}

// A foreign module that the client imports indirectly, through a package that may have it, is
// found.
func TestClientNeedsOnlyTheStandardLibrary(t *testing.T) {
	r := project
	r.modules = maps.Clone(project.modules)
	r.modules["internal/leasefsm"] = []string{"example.com/fsm"}
	wrong := checkWith(t, r, map[string]string{
		"go.mod":                 sound["go.mod"] + "require example.com/fsm v1.0.0\n",
		"internal/leasefsm/x.go": `package leasefsm; import _ "example.com/fsm"`,
	})
	const way = "the root package -> internal/leasefsm"
	if len(wrong) != 1 || !strings.Contains(wrong[0], way) {
		t.Errorf("found %q, want one line with %q", wrong, way)
	}
}

// Each package with rules is in one layer.
func TestRegistryIsConsistent(t *testing.T) {
	seen := map[string]bool{}
	for _, l := range project.layers {
		for _, pkg := range l {
			if seen[pkg] {
				t.Errorf("%s is in two layers", pkg)
			}
			seen[pkg] = true
		}
	}
	named := slices.Concat(project.equipment, project.pure)
	for _, m := range []map[string][]string{project.only, project.usedBy, project.modules} {
		named = slices.AppendSeq(named, maps.Keys(m))
	}
	for _, m := range []map[string][]string{project.only, project.usedBy} {
		for _, v := range m {
			named = append(named, v...)
		}
	}
	for _, pkg := range named {
		if !seen[pkg] {
			t.Errorf("%s has rules but no layer", pkg)
		}
	}
}
