package stories

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/testenv/etcdtest"
	"github.com/leasehold-dev/leasehold/internal/testenv/localredis"
)

// clientVar is set in client processes of the test binary.
const clientVar = "LEASEHOLD_STORIES_CLIENT"

func TestMain(m *testing.M) {
	if os.Getenv(clientVar) != "" {
		if err := Act(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// command starts this test binary as a client.
func command() *exec.Cmd {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), clientVar+"=1")
	c.Stderr = os.Stderr
	return c
}

// together runs stories at the same time: they wait for TTLs most of the time. It reports
// those for which check returns an error.
func together(t *testing.T, all []Story, c Config, check func(Story, []Event, error) error) {
	t.Helper()
	places := make(chan struct{}, 6)
	var done sync.WaitGroup
	for _, s := range all {
		done.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			c := c
			c.Command = command
			var told []Event
			c.Tell = func(e Event) { told = append(told, e) }
			err := s.Run(t.Context(), c)
			if err := check(s, told, err); err != nil {
				var b strings.Builder
				for _, e := range told {
					b.WriteString(e.Text())
				}
				t.Errorf("%s: %v\n%s", s.Name, err, b.String())
			}
		})
	}
	done.Wait()
}

// In each story the weak design fails and ours does not, and it ends as docs/stories.md says.
func TestStories(t *testing.T) {
	rows := page(t)
	together(t, All(), Config{}, func(s Story, told []Event, err error) error {
		for _, e := range told {
			if e.Part == Ours && e.Kind == End && !strings.Contains(rows[s.Name], string(e.Outcome)) {
				return fmt.Errorf("it ended as %q, and docs/stories.md says %q", e.Outcome, rows[s.Name])
			}
		}
		if errors.Is(err, errMended) {
			t.Logf("%s: %v", s.Name, err)
			return nil
		}
		return err
	})
}

// A story about a defect of etcd is refused for a version that does not have it.
func TestStoryOfAFixedDefectIsLeftOut(t *testing.T) {
	current, err := etcdtest.Current()
	if err != nil {
		t.Fatal(err)
	}
	err = revokedLease.Run(t.Context(), Config{Command: command, etcd: current})
	if !errors.Is(err, ErrLeftOut) || !errors.Is(err, errMended) {
		t.Errorf("the story of a fixed defect: %v, want %v and %v", err, ErrLeftOut, errMended)
	}
}

// page returns how our part of each story ends according to docs/stories.md.
func page(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../../../../docs/stories.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, r := range regexp.MustCompile("(?m)^\\| `([\\w-]+)` \\|.*\\| (.+) \\|$").FindAllSubmatch(text, -1) {
		rows[string(r[1])] = string(r[2])
	}
	if len(rows) != len(All()) {
		t.Errorf("docs/stories.md has %d stories, want %d", len(rows), len(All()))
	}
	return rows
}

// Without the guard, the late write that it catches succeeds.
func TestGuardRefusesLateWrites(t *testing.T) {
	all := []Story{failover, clockJump, pauseAfter, delayedPacket, sessionLost, revokedLease}
	for i, s := range all {
		all[i].Ours = s.Ours[len(s.Ours)-1:]
	}
	together(t, all, Config{unguarded: true}, func(s Story, _ []Event, err error) error {
		if errors.Is(err, errMended) {
			t.Logf("%s: %v", s.Name, err)
			return nil
		}
		if !errors.Is(err, ErrNotAsTold) || !strings.Contains(err.Error(), "Leasehold was not safe") {
			return fmt.Errorf("without a guard: %v, want %v, with \"Leasehold was not safe\"", err, ErrNotAsTold)
		}
		return nil
	})
}

// plays returns a story of these parts, which needs no server.
func plays(weak func(*stage) ending, ours ...func(*stage) ending) Story {
	s := Story{Name: "x", Title: "X", Weak: Part{play: weak}}
	for _, p := range ours {
		s.Ours = append(s.Ours, Part{play: p})
	}
	return s
}

func always(o Outcome) func(*stage) ending {
	return func(*stage) ending { return ending{o, "because."} }
}

func TestAStoryThatGoesAnotherWayIsAnError(t *testing.T) {
	for _, c := range []struct {
		story Story
		says  string
	}{
		{plays(always(Failed), always(Held), always(Guarded)), ""},
		{plays(always(Held), always(Held)), "the weak design did not fail: because."},
		{plays(always(Guarded), always(Held)), "the weak design did not fail: because."},
		{plays(always(Failed), always(Broken)), "Leasehold was not safe: because."},
		{plays(always(Failed), always(Held), always(Failed)), "Leasehold was not safe: because."},
		{plays(always(Failed), always("")), "Leasehold was not safe: because."},
	} {
		err := c.story.Run(t.Context(), Config{})
		if c.says == "" {
			if err != nil {
				t.Error(err)
			}
		} else if !errors.Is(err, ErrNotAsTold) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want %v with %q", err, ErrNotAsTold, c.says)
		}
	}
}

func TestFailedReplayIsNoVerdict(t *testing.T) {
	closed := 0
	failing := func(s *stage) ending {
		s.atEnd(func() { closed++ })
		s.fail("no scene")
		return ending{Failed, ""}
	}
	err := plays(failing).Run(t.Context(), Config{})
	if err == nil || errors.Is(err, ErrNotAsTold) || err.Error() != "x: no scene" || closed != 1 {
		t.Errorf("%v, closed %d times, want the error %q and once", err, closed, "x: no scene")
	}

	t.Setenv("PATH", t.TempDir())
	if err := setnx.Run(t.Context(), Config{Command: command}); !errors.Is(err, localredis.ErrNotInstalled) {
		t.Errorf("without a server: %v, want %v", err, localredis.ErrNotInstalled)
	}
	for _, s := range []Story{sessionLost, revokedLease} {
		if err := s.Run(t.Context(), Config{Command: command}); !errors.Is(err, ErrLeftOut) || !strings.Contains(err.Error(), "apt-get install") {
			t.Errorf("%s without a server: %v, want %v and text with %q", s.Name, err, ErrLeftOut, "apt-get install")
		}
	}
}

// If the machine is too slow for a TTL, the story is tried with longer ones, up to a bound.
func TestTooSlowIsTriedWithLongerLeases(t *testing.T) {
	var ttls []time.Duration
	slow := func(enough time.Duration) func(*stage) ending {
		return func(s *stage) ending {
			ttls = append(ttls, s.ttl)
			s.quickly(s.ttl >= enough)
			return ending{Failed, ""}
		}
	}
	if err := plays(slow(4*firstTTL)).Run(t.Context(), Config{}); err != nil || !slices.Equal(ttls, []time.Duration{firstTTL, 2 * firstTTL, 4 * firstTTL}) {
		t.Errorf("%v, with TTLs %v, want no error, and a doubled TTL after each try", err, ttls)
	}
	if err := plays(slow(time.Hour)).Run(t.Context(), Config{}); !errors.Is(err, errTooSlow) {
		t.Errorf("a story that is always too slow: %v, want %v", err, errTooSlow)
	}
}

func TestAStoryEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	waits := func(s *stage) ending {
		cancel()
		s.until("what never happens", func() bool { return false })
		return ending{Failed, ""}
	}
	if err := plays(waits).Run(ctx, Config{}); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "what never happens") {
		t.Errorf("a canceled story: %v, want %v and text with %q", err, context.Canceled, "what never happens")
	}
}

func TestResourceWithAGuard(t *testing.T) {
	_, err := perform(t.Context(), Config{}, newTimeline("x", Ours, func(Event) {}), firstTTL, func(s *stage) ending {
		r := s.resource(true)
		for _, c := range []struct {
			token    fence.Token
			accepted bool
		}{{33, true}, {34, true}, {33, false}, {34, true}, {0, false}} {
			o := order{Do: write, Addr: r.url, Value: fmt.Sprint("written with ", c.token), Token: c.token}
			got, err := writeTo(t.Context(), o)
			if err != nil || got.Accepted != c.accepted || (r.has() == o.Value) != c.accepted || !r.arrived(c.token) {
				t.Errorf("token %v: %+v, %v, want accepted %v; the resource has %s", c.token, got, err, c.accepted, r.has())
			}
		}
		return ending{}
	})
	if err != nil {
		t.Error(err)
	}
}

func TestText(t *testing.T) {
	const words = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
	for _, c := range []struct {
		e    Event
		want string
	}{
		{Event{Kind: Begin, Part: Weak, What: words},
			"\n  WEAK  one two three four five six seven eight nine ten eleven twelve thirteen\n        fourteen fifteen\n\n"},
		{Event{Kind: Step, At: 1234, Actor: "A", What: words},
			"      1.234  A         one two three four five six seven eight nine ten eleven\n                       twelve thirteen fourteen fifteen\n"},
		{Event{Kind: Fault, At: 5, Actor: "network", What: "is slow"}, "  !   0.005  network   is slow\n"},
		{Event{Kind: Note, What: "Well."}, "                       Well.\n"},
		{Event{Kind: End, Outcome: Guarded, What: "both."}, "\n  GUARDED: both.\n"},
	} {
		if got := c.e.Text(); got != c.want {
			t.Errorf("%+v is\n%s\nwant\n%s", c.e, got, c.want)
		}
	}
	for _, s := range All() {
		var b strings.Builder
		if err := s.Print(&b); err != nil {
			t.Error(err)
		}
		for line := range strings.Lines(b.String()) {
			if utf8.RuneCountInString(line) > width+1 {
				t.Errorf("%s: a line of more than %d runes: %s", s.Name, width, line)
			}
		}
	}
}
