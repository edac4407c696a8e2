//go:build unix

package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/statejson"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

// The permits of a semaphore that is held can be changed, on every store that keeps
// semaphores. Requests have to name the new number then.
func TestResize(t *testing.T) { everyKindOfLock(t, permitsChange) }

func permitsChange(t *testing.T, s *site) {
	t.Helper()
	resized := func(n string, want resizedJSON) {
		t.Helper()
		var got resizedJSON
		want.LockName = statejson.NameOf("x")
		if err := json.Unmarshal([]byte(s.run(0, "resize", "x", "--permits", n, "--json").out.String()), &got); err != nil || got != want {
			t.Errorf("%+v, want %+v (%v)", got, want, err)
		}
	}
	resized("3", resizedJSON{Permits: 3})
	one := s.hold("x", "--permits", "2")
	two := s.hold("x", "--permits", "2")
	waits := s.start("run", "x", "--permits", "2", "--", "true")
	waits.says(&waits.err, "waiting")
	resized("3", resizedJSON{Permits: 3, Was: 2, Changed: true})
	resized("3", resizedJSON{Permits: 3, Was: 3})
	waits.wants(125)
	if !strings.Contains(waits.err.String(), "semaphore of 3") || !strings.Contains(waits.err.String(), "semaphore of 2") {
		t.Errorf("the waiter does not say what has changed: %s, want text with %q and %q", waits.err.String(), "semaphore of 3", "semaphore of 2")
	}
	three := s.hold("x", "--permits", "3")
	if show := s.run(0, "show", "x").out.String(); !strings.Contains(show, "permits in use: 3 of 3\n") {
		t.Errorf("%s, want text with %q", show, "permits in use: 3 of 3\n")
	}
	p := s.run(0, "resize", "x", "--permits", "2")
	if !strings.Contains(p.err.String(), `semaphore "x" has 2 permits now, and had 3`) || p.out.String() != "" {
		t.Errorf("%s%s, want text with %q and nothing on stdout", p.out.String(), p.err.String(), `semaphore "x" has 2 permits now, and had 3`)
	}
	one.let()
	s.run(124, "run", "x", "--permits", "2", "--try", "--", "true") // two are held
	two.let()
	s.run(0, "run", "x", "--permits", "2", "--try", "--", "true")
	three.let()
	if p := s.run(0, "resize", "x", "--permits", "9"); !strings.Contains(p.err.String(), "nobody uses") {
		t.Errorf("stderr %s, want text with %q", p.err.String(), "nobody uses")
	}
	// Down to one permit, which makes it a mutex with two holders, and back.
	one, two = s.hold("y", "--permits", "2"), s.hold("y", "--permits", "2")
	if p := s.run(0, "resize", "y", "--permits", "1"); !strings.Contains(p.err.String(), "has 1 permit now, and had 2: it is a mutex") {
		t.Errorf("stderr %s, want text with %q", p.err.String(), "has 1 permit now, and had 2: it is a mutex")
	}
	if show := s.run(0, "show", "y").out.String(); !strings.Contains(show, "mutex, permits in use: 2 of 1\n") || !strings.Contains(show, "holder 2  slot 1, 1 of 1 permit\n") {
		t.Errorf("%s, want text with %q and %q", show, "mutex, permits in use: 2 of 1\n", "holder 2  slot 1, 1 of 1 permit\n")
	}
	lease, _, _ := strings.Cut(s.run(0, "acquire", "z", "--permits", "2", "--ttl", "1m").out.String(), " ")
	other := s.hold("z", "--permits", "2")
	s.run(0, "resize", "z", "--permits", "1")
	s.run(0, "release", "z", "--owner", lease)
	s.run(124, "run", "z", "--try", "--", "true")
	other.let()
	s.run(0, "resize", "y", "--permits", "3")
	three = s.hold("y", "--permits", "3")
	for _, h := range []*proc{one, two, three} {
		h.let()
	}
	for flag, kind := range map[string]string{"--shared": "read-write lock", "--permits=1": "mutex"} {
		other := s.hold("r", flag)
		if p := s.run(125, "resize", "r", "--permits", "2"); !strings.Contains(p.err.String(), "in use as a "+kind+" by ") || !strings.Contains(p.err.String(), "only a semaphore has permits") {
			t.Errorf("stderr %s, want text with %q and %q", p.err.String(), "in use as a "+kind+" by ", "only a semaphore has permits")
		}
		other.let()
	}
}

// Over several Redis servers a semaphore keeps its number, and the error says what to do.
func TestResizeOverSeveralServers(t *testing.T) {
	t.Parallel() // it mostly waits
	var urls []string
	for _, server := range redistest.StartN(t, 3) {
		urls = append(urls, server.Addr())
	}
	s := newSite(t, storeVar+"=redis://"+strings.Join(urls, ",")+"?node_timeout=10s")
	held := s.hold("x", "--permits", "2")
	if p := s.run(125, "resize", "x", "--permits", "3"); !strings.Contains(p.err.String(), "use a semaphore with another name") || p.out.String() != "" {
		t.Errorf("resize: %s%s, want an error that says what to do, and nothing on stdout", p.out.String(), p.err.String())
	}
	held.let()
	s.run(0, "run", "x", "--permits", "3", "--try", "--", "true") // with the last holder its number is gone
}

func TestResizeUsage(t *testing.T) {
	s := newSite(t)
	for args, says := range map[string]string{
		"resize":                       "give the name of a lock",
		"resize x":                     "give --permits",
		"resize x --permits 0":         "at least one permit",
		"resize x --permits -1":        "at least one permit",
		"resize x --permits many":      "not a whole number",
		"resize {x}:token --permits 2": "reserved",
	} {
		if p := s.run(125, strings.Fields(args)...); !strings.Contains(p.err.String(), says) || p.out.String() != "" {
			t.Errorf("%s: stdout %q, stderr %q, want text with %q and nothing on stdout", args, p.out.String(), p.err.String(), says)
		}
	}
}
