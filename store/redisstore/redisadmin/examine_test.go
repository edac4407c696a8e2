package redisadmin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// The conclusions from an examination are tested, on many kinds of servers, in
// cmd/leasehold/internal/doctor.

// An examination compares the clock of a server with the time of day here.
func TestExamineComparesClocks(t *testing.T) {
	server := redistest.Start(t)
	for _, off := range []time.Duration{-3 * time.Hour, 0, 3 * time.Hour} {
		wall := func() time.Time { return time.Now().Add(off) }
		e, err := examine(t.Context(), server.URL(), nil, Scope{TTL: time.Second}, wall)
		if err != nil {
			t.Fatal(err)
		}
		n := e.Nodes[0]
		if n.AheadError <= 0 || (n.Ahead+off).Abs() > n.AheadError+time.Second {
			t.Errorf("with the wall clock here off by %v, the server is ahead by %v, within %v, want the opposite", off, n.Ahead, n.AheadError)
		}
		if n.Trip <= 0 || n.Slowest < n.Trip {
			t.Errorf("the round trip takes %v, and the slowest %v, want both above zero and in order", n.Trip, n.Slowest)
		}
	}
}

func TestExamineRefusesInvalidRequests(t *testing.T) {
	server := redistest.Start(t)
	if _, err := Examine(t.Context(), "nope", nil, Scope{TTL: time.Second}); err == nil {
		t.Error("an invalid URL is accepted")
	}
	if _, err := Examine(t.Context(), server.URL(), nil, Scope{}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("no TTL: %v, want %v", err, store.ErrInvalid)
	}
	if _, err := Examine(t.Context(), server.URL(), &redisstore.Options{MaxTTL: -1}, Scope{TTL: time.Second}); err == nil {
		t.Error("invalid options are accepted")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Examine(ctx, server.URL(), nil, Scope{TTL: time.Second}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v, want %v", err, context.Canceled)
	}
}

// An examination ends with its context, although the server does not answer.
func TestExamineEndsWithItsContext(t *testing.T) {
	server := redistest.Start(t)
	if err := server.Freeze(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := Examine(ctx, server.URL()+"?connect_timeout=10m", nil, Scope{TTL: time.Second})
		done <- err
	}()
	time.AfterFunc(50*time.Millisecond, cancel)
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("examine: %v, want %v", err, context.Canceled)
		}
	case <-time.After(30 * time.Second):
		t.Error("the examination does not end with its context")
	}
	if err := server.Thaw(); err != nil {
		t.Fatal(err)
	}
}

func TestParseServer(t *testing.T) {
	for _, c := range []struct {
		info string
		want Server
	}{
		{"", Server{}},
		{"# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.0\r\nredis_mode:standalone\r\nrun_id:ab\r\nuptime_in_seconds:61\r\n",
			Server{Version: "7.2.4", Mode: "standalone", RunID: "ab", Uptime: 61 * time.Second}},
		{"role:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6379\r\n", Server{Replica: true, Master: "10.0.0.1:6379"}},
		{"role:active-replica\r\nmaster_host:::1\r\nmaster_port:6379\r\n", Server{Replica: true, Master: "[::1]:6379"}},
		{"role:master\r\nconnected_slaves:2\r\nloading:1\r\naof_enabled:1\r\naof_last_write_status:err\r\n",
			Server{Replicas: 2, Loading: true, AppendOnly: true, SaveFails: true}},
		{"used_memory:7\r\nmaxmemory:9\r\ntotal_system_memory:11\r\nmaxmemory_policy:allkeys-lru\r\nevicted_keys:3\r\n",
			Server{Memory: 7, MaxMemory: 9, SystemMemory: 11, Eviction: "allkeys-lru", Evicted: 3}},
		{"uptime_in_seconds:soon\r\nused_memory:-1\r\nconnected_slaves\r\n:x\r\n", Server{}},
	} {
		if got := parseServer(c.info); got != c.want {
			t.Errorf("%q:\n%+v, want\n%+v", c.info, got, c.want)
		}
	}
}

func TestParseMark(t *testing.T) {
	now := time.UnixMicro(5_000_000)
	s := &examination{wall: func() time.Time { return time.UnixMicro(6_000_000) }}
	text := func(s string) resp.Value { return resp.Value{Kind: '$', Text: []byte(s)} }
	for _, c := range []struct {
		v    resp.Value
		want Mark
	}{
		{resp.Value{Kind: '$', Null: true}, Mark{}},
		{text("1 shut - ab - 7000000 6000000 restarted 5000000 0 0 0 - 0 - -"), Mark{Found: true, RunID: "ab", Why: "it was restarted, and may have forgotten leases", Quarantined: true, OpensIn: 2 * time.Second}},
		{text("1 shut - ab - 4000000 9000000 restarted 5000000 0 0 0 - 0 - -"), Mark{Found: true, RunID: "ab", Why: "it was restarted, and may have forgotten leases", Quarantined: true, OpensIn: 3 * time.Second}},
		{text("1 shut - ab - 4000000 4000000 restarted 5000000 0 0 0 - 0 - -"), Mark{Found: true, RunID: "ab", Why: "it was restarted, and may have forgotten leases", Quarantined: true}},
		{text("1 open - ab - 0 0 declared 0 3 3 0 - 0 - -"), Mark{Found: true, RunID: "ab", Why: `it may have forgotten leases ("declared")`, Durable: true}},
		{text("1 open d061ae3a340a ab - 0 0 declared 0 0 0 0 - 0 - a:1,b:1,c:1"), Mark{Found: true, RunID: "ab", Why: `it may have forgotten leases ("declared")`, Others: "a:1,b:1,c:1"}},
	} {
		if got := s.readMark(c.v, now); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.v, got, c.want)
		}
	}
	for _, v := range []resp.Value{{Kind: '-', Text: []byte("NOPERM")}, text(""), text("2 open"), text("1 open"), text("1 open - ab - soon 0 declared 0 3 3 0 - 0 - -")} {
		if got := s.readMark(v, now); got.Err == nil || got.Found {
			t.Errorf("%v: %+v, want an error", v, got)
		}
	}
}

func TestLikeness(t *testing.T) {
	for value, want := range map[string]string{
		store.NewOwner():                           "as Leasehold writes",
		`me {"host":"h"}`:                          "as Leasehold writes",
		"bm90IGEgcmVhbCBrZXkhIQ==":                 "as redsync writes",
		"bm90IGEgcmVhbCBrZXkhIQ":                   "as bsm/redislock writes",
		"0123456789abcdef0123456789abcdef":         "as redis-py and node-redlock write",
		"0b16b1f0-5a25-4b5c-a22b-3f5b0b1c8f6e":     "a UUID",
		"1700000000":                               "a number",
		"\xff":                                     "binary data",
		"hunter2 is what somebody keeps in there!": "",
	} {
		if got := likeness(value); got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
		if ours(value) != (want == "as Leasehold writes") {
			t.Errorf("ours(%q) = %v, want the opposite", value, ours(value))
		}
	}
}

// An examination tries every right of a rule that locks need.
func TestEveryRightOfLocksIsTried(t *testing.T) {
	for _, r := range rights {
		if slices.Contains([]string{"publish", "subscribe", "client|tracking", "hscan"}, r.command) {
			continue // locks work without these; listening tries the first two
		}
		if (trials[r.command] != nil) != (r.uses&ToLock != 0 && r.command != "info") {
			t.Errorf("%s is tried: %v, want %v, as locks need it", r.command, trials[r.command] != nil, r.uses&ToLock != 0)
		}
	}
}

// Many odd keys are counted, and some named.
func TestSurveyOfManyKeys(t *testing.T) {
	server := redistest.Start(t)
	const n = 3*surveyBatch + 1
	server.Text(t, "EVAL", `for i = 1, ARGV[1] do
			redis.call('SET', 'jobs/' .. i, 'x')
		end`, "0", fmt.Sprint(n))
	e, err := Examine(t.Context(), server.URL(), nil, Scope{TTL: time.Second, Prefix: "jobs/"})
	if err != nil {
		t.Fatal(err)
	}
	k := e.Nodes[0].Keys
	if k.Err != nil || k.Partial || k.Locks != n || len(k.Odd) != 1 || k.Odd[0].Oddity != Endless {
		t.Fatalf("the survey is %+v, want %d locks without an end", k, n)
	}
	for _, o := range k.Odd {
		if o.Count != n || len(o.Examples) != exampleKeys || !strings.Contains(o.Examples[0].Key, "jobs/") {
			t.Errorf("oddity %+v, want %d keys, with %d examples", o, n, exampleKeys)
		}
	}
}
