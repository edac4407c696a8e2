package redisguard_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/guard/redisguard"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

// evalOf returns an Eval without a client library. The tests of the package's
// documentation are tried in the module guard/guardtest.
func evalOf(s *redistest.Server) redisguard.Eval {
	return func(ctx context.Context, script string, keys, args []string) (any, error) {
		command := append([]string{"EVAL", script, strconv.Itoa(len(keys))}, keys...)
		answer, err := s.Do(ctx, append(command, args...)...)
		return plain(answer), err
	}
}

// plain converts an answer of the server to the types of an Eval.
func plain(answer any) any {
	switch answer := answer.(type) {
	case redistest.None:
		return nil
	case []any:
		all := make([]any, len(answer))
		for i := range answer {
			all[i] = plain(answer[i])
		}
		return all
	}
	return answer
}

func open(t *testing.T, args ...string) (*redistest.Server, redisguard.Eval) {
	t.Helper()
	s := redistest.Start(t, args...)
	return s, evalOf(s)
}

func newGuard(t *testing.T, eval redisguard.Eval, o *redisguard.Options) *redisguard.Guard {
	t.Helper()
	g, err := redisguard.New(eval, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// refusedBy fails the test unless err says that offered was refused because of highest.
func refusedBy(t *testing.T, err error, resource string, offered, highest fence.Token) {
	t.Helper()
	var stale *fence.StaleError
	if !errors.Is(err, fence.ErrStale) || !errors.As(err, &stale) || *stale != (fence.StaleError{Resource: resource, Offered: offered, Highest: highest}) {
		t.Errorf("got %v, want token %v refused because of %v by %s", err, offered, highest, resource)
	}
}

// Tokens of the size that the Redis store grants.
const early, late fence.Token = 1_795_275_000_000_001, 1_795_275_000_000_002

func TestRedisRefusesOlderTokens(t *testing.T) {
	s, eval := open(t)
	g := newGuard(t, eval, nil)
	ctx := t.Context()
	for name, write := range map[string]func(key string, token fence.Token) error{
		"set":    func(key string, token fence.Token) error { return g.Set(ctx, key, token.String(), token, 0) },
		"delete": func(key string, token fence.Token) error { return g.Delete(ctx, key, token) },
		"script": func(key string, token fence.Token) error {
			_, err := g.Run(ctx, `return redis.call('SET', KEYS[1], ARGV[1])`, key, token, []string{key}, []string{token.String()})
			return err
		},
		"admit": func(key string, token fence.Token) error { return g.Admit(ctx, key, token) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, first := range []fence.Token{9, 10, early, late, late} { // as numbers, not as text
				if err := write(name, first); err != nil {
					t.Fatalf("token %v: %v", first, err)
				}
			}
			s.Text(t, "SET", name, "of the newer one")
			refusedBy(t, write(name, early), name, early, late)
			if got := s.Text(t, "GET", name); got != "of the newer one" {
				t.Errorf("after the refused write the key has %q, want %q", got, "of the newer one")
			}
			if got := s.Text(t, "GET", "{"+name+"}:fence"); got != late.String() {
				t.Errorf("the remembered token is %q, want %v", got, late)
			}
		})
	}
}

// The token is remembered after the data was deleted.
func TestDeletedKeysStayGuarded(t *testing.T) {
	s, eval := open(t)
	g := newGuard(t, eval, nil)
	ctx := t.Context()
	if err := errors.Join(g.Set(ctx, "k", "v", late, time.Hour), g.Delete(ctx, "k", late)); err != nil {
		t.Fatal(err)
	}
	refusedBy(t, g.Set(ctx, "k", "old", early, 0), "k", early, late)
	if got := strings.Join(s.Keys(t), " "); got != "{k}:fence" {
		t.Errorf("keys: %s, want only %q", got, "{k}:fence")
	}
}

func TestTimeToLive(t *testing.T) {
	s, eval := open(t)
	ctx := t.Context()
	if err := newGuard(t, eval, &redisguard.Options{Keep: time.Hour}).Set(ctx, "k", "v", early, time.Minute); err != nil {
		t.Fatal(err)
	}
	for key, most := range map[string]string{"k": "60", "{k}:fence": "3600"} {
		if got := s.Text(t, "TTL", key); len(got) != len(most) || got > most {
			t.Errorf("TTL of %s is %s s, want nearly %s", key, got, most)
		}
	}
	if err := newGuard(t, eval, nil).Set(ctx, "k", "v", early, 0); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"k", "{k}:fence"} {
		if got := s.Text(t, "TTL", key); got != "-1" {
			t.Errorf("TTL of %s is %s, want none", key, got)
		}
	}
}

func TestScriptsSeeTheirOwnArguments(t *testing.T) {
	_, eval := open(t)
	g := newGuard(t, eval, nil)
	run := func(script string, args ...string) (any, error) {
		return g.Run(t.Context(), script, "r", early, []string{"{r}a", "{r}b"}, args)
	}
	for _, c := range []struct{ script, want string }{
		{`return #KEYS .. KEYS[1] .. KEYS[2] .. #ARGV .. ARGV[1] -- with a remark`, "2{r}a{r}b1x"},
		{`return 42`, "42"},
		{`return {1, 'two'}`, "[1 two]"},
		{`return`, "<nil>"},
		{`return redis.call('GET', KEYS[1])`, "<nil>"},
		{`local n = 0 for i = 1, 10 do n = n + i end return n`, "55"},
	} {
		got, err := run(c.script, "x")
		if err != nil || fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, %v, want %s", c.script, got, err, c.want)
		}
	}
	for _, script := range []string{`return redis.error_reply('MINE says no')`, `error('MINE says no')`} {
		if got, err := run(script); err == nil || !strings.Contains(err.Error(), "MINE says no") || errors.Is(err, fence.ErrStale) {
			t.Errorf("%s: %v, %v, want an error with %q", script, got, err, "MINE says no")
		}
	}
}

func TestFenceKeyIsInTheSlotOfItsResource(t *testing.T) {
	s := redistest.Start(t, "--cluster-enabled", "yes")
	for _, resource := range []string{"a", "a{b", "{a}b", "x{tag}y", "x{tag}{y}", "a:b c", "{{a}}", "ä€"} {
		key, err := redisguard.FenceKey(resource)
		if err != nil {
			t.Errorf("%q: %v", resource, err)
			continue
		}
		if a, b := s.Text(t, "CLUSTER", "KEYSLOT", resource), s.Text(t, "CLUSTER", "KEYSLOT", key); a != b {
			t.Errorf("%q is in slot %s and its fence %q in %s, want the same", resource, a, key, b)
		}
	}
	for _, resource := range []string{"", "a}", "{}a", "}{", "{a}:fence", "{a}b:fence:tagged"} {
		if key, err := redisguard.FenceKey(resource); !errors.Is(err, redisguard.ErrInvalid) {
			t.Errorf("%q: %q, %v, want %v", resource, key, err, redisguard.ErrInvalid)
		}
	}
}

// Different resources have different fences.
func TestFencesAreNotShared(t *testing.T) {
	_, eval := open(t)
	g := newGuard(t, eval, nil)
	for i, resource := range []string{"x", "{x}", "{x}:", "x:fence", "{x}x", "x:fence:tagged"} {
		token := late - fence.Token(i)
		if err := g.Admit(t.Context(), resource, token); err != nil {
			t.Errorf("%q: %v, want its own fence", resource, err)
		}
		if highest, err := g.Highest(t.Context(), resource); highest != token || err != nil {
			t.Errorf("%q: the largest token is %v, %v, want %v", resource, highest, err, token)
		}
	}
	if highest, err := g.Highest(t.Context(), "never used"); highest != 0 || err != nil {
		t.Errorf("a resource never used: %v, %v, want 0", highest, err)
	}
}

func TestBadCallsAreRefusedBeforeAnythingIsSent(t *testing.T) {
	g := newGuard(t, func(context.Context, string, []string, []string) (any, error) {
		t.Error("a script was sent, want none")
		return nil, errors.New("sent")
	}, nil)
	ctx := t.Context()
	_, noEval := redisguard.New(nil, nil)
	_, keep := redisguard.New(func(context.Context, string, []string, []string) (any, error) { return nil, nil }, &redisguard.Options{Keep: -1})
	_, shebang := g.Run(ctx, "#!lua\nreturn 1", "r", early, nil, nil)
	for i, err := range []error{
		noEval, keep, shebang,
		g.Set(ctx, "", "v", early, 0),
		g.Set(ctx, "k", "v", 0, 0),
		g.Set(ctx, "k", "v", fence.Max+1, 0),
		g.Set(ctx, "k", "v", early, -time.Second),
		g.Set(ctx, "k", "v", early, time.Microsecond),
		g.Delete(ctx, "a}", early),
	} {
		if !errors.Is(err, redisguard.ErrInvalid) {
			t.Errorf("call %d: %v, want %v", i, err, redisguard.ErrInvalid)
		}
	}
}

// An unexpected reply must never count as a successful write.
func TestUnexpectedAnswers(t *testing.T) {
	boom := errors.New("boom")
	for _, answer := range []any{nil, "OK", int64(1), []any{}, []any{int64(1)}, []any{int64(0), "none"}, []any{int64(0), early.String()}, []any{"1", nil}, []any{int64(2), nil}, boom} {
		g := newGuard(t, func(context.Context, string, []string, []string) (any, error) {
			if answer == boom {
				return nil, boom
			}
			return answer, nil
		}, nil)
		err := g.Set(t.Context(), "k", "v", late, 0)
		if err == nil || errors.Is(err, fence.ErrStale) || (answer == boom) != errors.Is(err, boom) {
			t.Errorf("the answer %v: %v, want an error, but not a stale token", answer, err)
		}
	}
	s, eval := open(t)
	s.Text(t, "SET", "{k}:fence", "something else")
	if err := newGuard(t, eval, nil).Set(t.Context(), "k", "v", late, 0); err == nil || !strings.Contains(err.Error(), "something else") {
		t.Errorf("with a fence that is no number: %v, want an error with %q", err, "something else")
	}
	if got := s.Text(t, "EXISTS", "k"); got != "0" {
		t.Error("the key was written, want it not to be")
	}
}

func Example() {
	server, err := redistest.Launch(redistest.Options{}) // yours runs already
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer server.Close()

	// An Eval for your client: the documentation of the package has some.
	guard, err := redisguard.New(evalOf(server), nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	ctx := context.Background()
	const first, second fence.Token = 33, 34 // from lease.Token()

	fmt.Println(guard.Set(ctx, "report", "of the second holder", second, 0))
	fmt.Println(guard.Set(ctx, "report", "of the first, which was paused", first, 0))
	// Output:
	// <nil>
	// "report" refuses fencing token 33: it has seen 34, so the lease is over and a later holder has written
}
